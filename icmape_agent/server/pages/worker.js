// Keeps this page in the browser, so that it opens without a network. Messages and the state are never kept.
//
// The network comes first, for three seconds; then the copy. Only a file of the kind that was asked for is kept and shown
// in its place: a proxy's error or the page of a hotel's network is not. A 401 says that the link ended, and is shown.
"use strict";
const CACHE = `icmape${new URL("./", self.location).pathname}`;
const FILES = ["./", "page.css", "icon.svg", "icmape.js", "acting.js", "outbox.js", "views.js", "fields.js", "agent.js", "team.json", "about.json"];
const PATIENCE = 3000; // milliseconds
const KINDS = { css: "text/css", svg: "image/svg+xml", js: "text/javascript", json: "application/json" };

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)).then(() => self.skipWaiting()));
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

async function isOurs(name, response) {
  if (!response.ok || response.redirected) return false;
  const kind = KINDS[name.split(".").pop()] || "text/html";
  if (!(response.headers.get("content-type") || "").startsWith(kind)) return false;
  return kind !== "text/html" || (await response.clone().text()).includes("icmape.js");
}

async function fromNetwork(name, request, cache, kept) {
  const response = await fetch(request);
  if (await isOurs(name, response)) await cache.put(request, response.clone()).catch(() => {}); // no room: it is shown all the same
  else if (kept && response.status !== 401) return kept;
  return response;
}

function answer(event, name) {
  const coming = caches.open(CACHE).then(async (cache) => {
    const kept = await cache.match(event.request, { ignoreSearch: true });
    const fetched = fromNetwork(name, event.request, cache, kept);
    event.waitUntil(fetched.catch(() => {})); // a slow file is kept for the next time
    if (!kept) return fetched;
    const late = new Promise((resolve) => setTimeout(resolve, PATIENCE, kept));
    return Promise.race([fetched.catch(() => kept), late]);
  });
  event.respondWith(coming);
}
self.addEventListener("fetch", (event) => {
  const name = new URL(event.request.url).href.slice(new URL("./", self.location).href.length);
  if (event.request.method === "GET" && (name === "" || FILES.includes(name))) answer(event, name);
});
