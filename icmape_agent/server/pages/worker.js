// Keeps this page in the browser, so that it opens without a network. Messages and the state are never kept.
"use strict";
const CACHE = `icmape${new URL("./", self.location).pathname}`;
const FILES = ["./", "page.css", "icon.svg", "icmape.js", "acting.js", "outbox.js", "views.js", "fields.js", "agent.js", "team.json", "about.json"];

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)).then(() => self.skipWaiting()));
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

async function fromNetwork(request) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept) return kept;
    throw error;
  }
}
self.addEventListener("fetch", (event) => {
  const name = new URL(event.request.url).href.slice(new URL("./", self.location).href.length);
  if (event.request.method === "GET" && (name === "" || FILES.includes(name))) event.respondWith(fromNetwork(event.request));
});
