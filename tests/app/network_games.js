// Prints the network's games in all worlds of a team: runtime.js, views.js, fields.js, games.js, then the team's JSON.
"use strict";
const fs = require("fs"), vm = require("vm");
const [code, data] = [process.argv.slice(2, -1), process.argv[process.argv.length - 1]];
vm.runInThisContext(`${code.map((path) => fs.readFileSync(path, "utf8").replace(/^if \(typeof module.*$/m, "")).join("\n")}\nglobalThis.games = games; globalThis.icmape = icmape;`);
const book = new games.Book(JSON.parse(fs.readFileSync(data, "utf8")));
for (let number = 0; number < book.count; number++) {
  const game = games.networkGame(book, number), { rounds, answer, right } = game.result();
  const history = { actions: game.actions, readings: game.readings, first: game.first };
  const exact = book.hasExact ? new games.Exact(book) : null;
  const found = { number, rounds, right, actions: game.actions, last: game.last, readings: game.readings, decision: answer.decision, confidence: answer.confidence, probabilities: Array.from(answer.probabilities) };
  if (exact && number < 3) found.exact = Array.from(exact.after(history, rounds).probabilities);
  found.margins = games.margins(book, history);
  process.stdout.write(`${JSON.stringify(found)}\n`);
}
