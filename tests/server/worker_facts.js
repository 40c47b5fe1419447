// What the service worker shows and keeps for each thing that the network may do. Prints one JSON object. Its seconds are
// hundredths here.
"use strict";
const fs = require("fs"), vm = require("vm");
const BASE = "https://field.example.org/TOKEN/";
const TYPES = { "": "text/html; charset=utf-8", "agent.js": "text/javascript; charset=utf-8", "team.json": "application/json" };
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const file = (name, body) => new Response(name ? body : `${body} <script src="icmape.js">`, { headers: { "content-type": TYPES[name] } });

async function asked(name, network, isKept = true) {
  const store = new Map(), handlers = {}, waiting = [];
  const cache = {
    match: async (request) => store.get(request.url) && store.get(request.url).clone(),
    put: async (request, response) => { store.set(request.url, response); },
    addAll: async () => {},
  };
  const self = { location: new URL("worker.js", BASE), addEventListener: (type, handler) => { handlers[type] = handler; } };
  const soon = (run, milliseconds, value) => setTimeout(run, milliseconds / 100, value);
  vm.runInNewContext(fs.readFileSync(process.argv[2], "utf8"), { self, URL, Promise, caches: { open: async () => cache }, fetch: network, setTimeout: soon });
  const url = BASE + name;
  if (isKept) store.set(url, file(name, "kept"));
  let reply = null;
  handlers.fetch({ request: { method: "GET", url }, respondWith: (coming) => { reply = coming; }, waitUntil: (coming) => waiting.push(coming) });
  if (!reply) return ["left alone"];
  const words = async (response) => (response ? [response.status, (await response.text()).split(" ")[0]] : null);
  const shown = await reply.then(words, (error) => error.message);
  await Promise.all(waiting);
  return { shown, kept: await words(store.get(url)) };
}

const status = (code) => async () => new Response("error page", { status: code, headers: { "content-type": "text/javascript" } });
const portal = async () => new Response("portal page", { headers: { "content-type": "text/html" } });
async function all() {
  const facts = { errors: {} };
  for (const code of [401, 403, 404, 408, 429, 500, 502, 503]) facts.errors[code] = (await asked("agent.js", status(code))).shown;
  facts.fresh = await asked("agent.js", async () => file("agent.js", "new"));
  facts.page = await asked("", async () => file("", "new"));
  facts.offline = await asked("", async () => { throw new TypeError("offline"); });
  facts.slow = await asked("agent.js", async () => { await wait(5); return file("agent.js", "new"); });
  facts.silent = (await asked("agent.js", async () => { await wait(150); return file("agent.js", "late"); })).shown;
  facts.portal = { script: await asked("agent.js", portal), program: await asked("team.json", portal), page: await asked("", portal) };
  facts.firstVisit = { error: (await asked("agent.js", status(502), false)).shown, offline: (await asked("agent.js", async () => { throw new TypeError("offline"); }, false)).shown, portal: (await asked("agent.js", portal, false)).kept };
  facts.state = await asked("state", portal);
  return facts;
}
all().then((facts) => console.log(JSON.stringify(facts)));
