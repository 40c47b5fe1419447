// What the page of an agent would do next, for lists of entries on standard input, one JSON line each.
"use strict";
const fs = require("fs");
const [runtime, actingFile, program] = process.argv.slice(2);
global.icmape = require(runtime);
const acting = require(actingFile), exported = JSON.parse(fs.readFileSync(program)), actors = new Map();
for (const line of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const { agent, entries } = JSON.parse(line);
  if (!actors.has(agent)) actors.set(agent, new acting.Acting(icmape.load(exported), agent));
  process.stdout.write(JSON.stringify(actors.get(agent).next(entries)) + "\n");
}
