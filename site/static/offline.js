/* Keeps what was visited, so that it is there without a network. The build puts this file
   beside the front page, with a word for the edition: a new edition begins a new store. */
const EDITION = "edition";

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => event.waitUntil(forget()));

async function forget() {
  for (const name of await caches.keys()) if (name !== EDITION) await caches.delete(name);
  await self.clients.claim();
}

/* A page of this edition tells what it had asked for before anybody kept it. */
self.addEventListener("message", ({ data }) => {
  for (const address of data) kept(new Request(address)).catch(() => {});
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  event.respondWith(kept(request));
});

/** What is in the store, or else comes from the network and is put there. */
async function kept(request) {
  const store = await caches.open(EDITION);
  const found = await store.match(request, { ignoreSearch: request.mode === "navigate" });
  if (found) return found;
  const answer = await fetch(request);
  if (answer.ok && !answer.redirected) await store.put(request, answer.clone());
  return answer;
}
