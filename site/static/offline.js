/* Keeps the chapters from the first visit on, and what else was visited, so that it's there
   without a network. The build puts this file beside the front page, with a word for the
   edition and a list of its files: a new edition begins a new store. */
const OWN = `llmtrain ${self.registration.scope} `; // others at this origin have stores too
const STORE = OWN + "edition";
const FILES = []; // pages and what they ask for
const AWAY = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Not here</title>
  <meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
  <body style="font: 19px/1.5 sans-serif; margin: 2em"><p>This page isn't on your device yet, and
  there's no network to fetch it. <a href="${self.registration.scope}">The chapters are here.</a></p>`;

self.addEventListener("install", (event) => event.waitUntil(fill()));

async function fill() {
  const store = await caches.open(STORE);
  await Promise.allSettled(FILES.map((file) => store.add(new Request(file, { cache: "no-cache" }))));
  await self.skipWaiting();
}

self.addEventListener("activate", (event) => event.waitUntil(forget()));

async function forget() {
  const old = (await caches.keys()).filter((name) => name.startsWith(OWN) && name !== STORE);
  await Promise.all(old.map((name) => caches.delete(name)));
  await self.clients.claim();
}

/* A page of this edition tells what it had asked for before anybody kept it. */
self.addEventListener("message", ({ data }) => {
  for (const address of data) fromStore(new Request(address)).catch(() => {});
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  event.respondWith(fromStore(request).catch((error) => away(request, error)));
});

/** A sentence in place of a page; what a page asks for fails as it would. */
function away(request, error) {
  if (request.mode !== "navigate") throw error;
  return new Response(AWAY, { status: 503, headers: { "Content-Type": "text/html; charset=utf-8" } });
}

/** What is in the store, or else comes from the network and is put there. */
async function fromStore(request) {
  const store = await caches.open(STORE);
  const cached = await store.match(request, { ignoreSearch: true });
  if (cached) return cached;
  const answer = await fetch(request);
  if (answer.ok && !answer.redirected) await store.put(request, answer.clone());
  return answer;
}
