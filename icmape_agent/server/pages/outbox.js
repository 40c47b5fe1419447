// Keeps what an agent told in the browser, and sends it when there is a network.
//
// An entry is stored before it is shown, each under a key of its own, so that two tabs of one link do not overwrite each
// other's. It has an id, so that a repeat is the same tell. It is sent after a few seconds, in which it can be corrected;
// what is stored and not sent can be corrected too.
"use strict";
const outbox = (() => {
  const WAITS = [1, 2, 5, 10, 20]; // seconds between attempts
  const PAUSE = 60; // seconds more for which a correction holds an entry back, unless it is renewed
  const FINAL = ["malformed", "refused", "conflict", "forbidden", "early"]; // errors of a session that a repeat does not cure
  const SENT = ["type", "round", "action", "reading", "id", "time", "note"]; // of an entry, in its message
  const only = (names, entry) => Object.fromEntries(names.filter((name) => entry[name] !== undefined).map((name) => [name, entry[name]]));
  const same = (one, other) => ["type", "round", "action"].every((name) => one[name] === other[name]) &&
    JSON.stringify(one.reading) === JSON.stringify(other.reading);

  function newId() {
    return Array.from(crypto.getRandomValues(new Uint8Array(12)), (n) => n.toString(16).padStart(2, "0")).join("");
  }

  class Outbox {
    constructor({ name, storage, post, changed, hold, clock = Date.now }) {
      Object.assign(this, { name, storage, post, changed, hold, clock, busy: false, failures: 0, next: 0, online: true, refused: "" });
      this.posting = new Set(); // ids
      this.unstored = new Map(); // by id: changes that the browser had no room for
      this.adopt();
      this.load();
    }

    // -- what is stored

    key(id) { return `${this.name}/${id}`; }

    // Reads what all tabs stored. An entry that another one replaces is left out: the tab was closed before it was removed.
    load() {
      const found = new Map();
      for (let n = 0; n < this.storage.length; n++) {
        const key = this.storage.key(n);
        if (!key || !key.startsWith(`${this.name}/`)) continue;
        try {
          const entry = JSON.parse(this.storage.getItem(key));
          found.set(entry.id, entry);
        } catch { continue; }
      }
      for (const [id, entry] of this.unstored) found.set(id, entry);
      const entries = [...found.values()], replaced = new Set(entries.map((entry) => entry.replaces));
      this.entries = entries.filter((entry) => !replaced.has(entry.id)).sort((a, b) => a.order - b.order || (a.id < b.id ? -1 : 1));
    }

    // Stores an entry; throws if the browser does not keep it.
    store(entry) {
      const text = JSON.stringify(entry);
      this.storage.setItem(this.key(entry.id), text);
      if (this.storage.getItem(this.key(entry.id)) !== text) throw new Error("this browser stores nothing");
      this.unstored.delete(entry.id);
    }

    // Stores what is known elsewhere too: without room it stays in memory.
    keep(entry) {
      try { this.store(entry); }
      catch { this.unstored.set(entry.id, entry); }
    }

    // Changes an entry as it is stored now: another tab may have changed it, or removed it.
    change(id, change) {
      const text = this.storage.getItem(this.key(id)), known = this.unstored.get(id) || (text && JSON.parse(text));
      if (known) this.keep({ ...known, ...change });
    }

    remove(id) {
      this.storage.removeItem(this.key(id));
      this.unstored.delete(id);
    }

    adopt() { // version 0.13.0 stored one list
      let list;
      try { list = JSON.parse(this.storage.getItem(this.name)) || []; }
      catch { list = []; }
      list.forEach((entry, order) => this.keep({ ...entry, id: entry.id || `${entry.type}-${entry.round}`, order }));
      if (!this.unstored.size) this.storage.removeItem(this.name);
    }

    settled() {
      this.load();
      this.changed();
    }

    // -- questions

    live() { return this.entries.filter((entry) => entry.state !== "refused"); }
    kept() { return this.entries.filter((entry) => entry.state === "kept"); }
    sent() { return this.entries.filter((entry) => entry.state === "sent").map((entry) => entry.id); }
    unsent() { return this.live().filter((entry) => entry.state !== "sent"); }
    last() { return this.live().filter((entry) => entry.type !== "stop").sort((a, b) => (a.round ?? -1) - (b.round ?? -1)).pop(); }
    isKept(id) { return this.kept().some((entry) => entry.id === id); }
    canCorrect(entry) { return Boolean(entry) && entry.state === "kept" && !this.posting.has(entry.id); }
    isPaused(entry) { return entry.from > this.clock() + this.hold * 1000; }

    // -- what people do

    // A new entry. The next one releases those before it, but a stop waits beside the reading that it follows from.
    record(content, replaces) {
      this.load();
      const time = new Date(this.clock()).toISOString(), order = 1 + Math.max(-1, ...this.entries.map((entry) => entry.order));
      const added = { ...content, id: newId(), time, state: "kept", from: this.clock() + this.hold * 1000, order, replaces };
      this.store(added);
      if (content.type !== "stop") for (const old of this.kept()) if (old.id !== replaces) this.change(old.id, { from: 0 });
      this.settled();
      return added;
    }

    // While an entry is corrected, it is not sent, nor is a stop that followed from it.
    pause(id) {
      const longest = (this.hold + PAUSE) * 1000, from = this.clock() + longest;
      for (const entry of this.kept()) if ((entry.id === id || entry.type === "stop") && entry.from < from - longest / 4) this.change(entry.id, { from });
      this.load();
    }
    resume() {
      const from = this.clock() + this.hold * 1000;
      for (const entry of this.kept()) if (this.isPaused(entry)) this.change(entry.id, { from });
      this.settled();
    }

    // Another content for an entry that was not sent, or (null) none; a stop that followed from it is dropped.
    correct(id, content) {
      this.load();
      if (!this.isKept(id)) throw new Error("the earlier one was sent meanwhile");
      const stops = this.kept().filter((entry) => entry.type === "stop"), added = content ? this.record(content, id) : null;
      for (const stop of stops) this.remove(stop.id);
      this.remove(id);
      this.settled();
      return added;
    }

    // -- what the journal holds

    // The journal's entries of this agent: they were recorded, whoever sent them. Of those in `sent`, which were sent
    // before the journal was asked, one that it lacks is sent again.
    merge(recorded, sent = []) {
      this.load();
      const before = JSON.stringify(this.entries);
      for (const entry of recorded) {
        const own = this.live().find((one) => one.type === entry.type && one.round === entry.round);
        if (own && own.state === "sent") continue;
        if (own && same(own, entry)) this.change(own.id, { state: "sent" });
        else {
          if (own) this.refuse(own.id, "the journal holds another one for this round, which counts");
          const order = 1 + Math.max(-1, ...this.entries.map((one) => one.order));
          this.keep({ ...only(SENT, entry), id: entry.id || `${entry.type}-${entry.round}`, state: "sent", order });
        }
        this.load();
      }
      const holds = (own) => recorded.some((entry) => entry.round === own.round && (entry.type === own.type || (own.type === "missed" && entry.type === "tell")));
      for (const own of this.entries) if (sent.includes(own.id) && own.state === "sent" && !holds(own)) this.change(own.id, { state: "kept", from: 0 });
      this.load();
      if (JSON.stringify(this.entries) !== before) this.changed();
    }

    refuse(id, error) { this.change(id, { state: "refused", error, replaces: undefined }); }

    // -- sending

    // What is to be sent now. A time that is too far ahead is none: the phone's clock was set back.
    due() {
      const now = this.clock(), furthest = now + (this.hold + PAUSE) * 1000;
      return this.kept().filter((entry) => entry.from <= now || entry.from > furthest);
    }

    // Sends what is due, the oldest first. A failure is tried again later.
    async flush() {
      this.load();
      if (this.busy || this.refused || this.clock() < this.next) return;
      this.busy = true;
      try {
        for (let entry = this.due()[0]; entry; entry = this.due()[0]) {
          if (!(await this.deliver(entry))) break;
        }
      } finally { this.busy = false; }
      this.changed();
    }

    // The page is hidden, and may never run again: everything is sent at once, but what is being corrected.
    async leave() {
      for (const entry of this.kept()) if (!this.isPaused(entry)) this.change(entry.id, { from: 0 });
      this.load();
      if (!this.refused) await Promise.all(this.due().map((entry) => this.deliver(entry, { keepalive: true })));
      this.changed();
    }

    // Only a reply of the session to this very message counts. Whatever else comes (the page of a hotel's network, an error
    // of a proxy) is a failure.
    async deliver(entry, more = {}) {
      let reply;
      this.posting.add(entry.id);
      try { reply = await this.post(only(SENT, entry), more); }
      catch { return this.failed(false); }
      finally { this.posting.delete(entry.id); }
      const body = reply.body || {}, kind = (body.error || {}).kind, answered = body.id === entry.id;
      if (reply.status === 401 && body.ok === false && kind === "forbidden") {
        Object.assign(this, { refused: reply.text, online: true });
        return false;
      }
      if (answered && body.ok === true) this.change(entry.id, { state: "sent" });
      else if (answered && body.ok === false && FINAL.includes(kind)) this.refuse(entry.id, reply.text);
      else return this.failed(typeof body.ok === "boolean");
      this.reached();
      this.load();
      return true;
    }

    failed(online) {
      this.online = online;
      this.next = this.clock() + WAITS[Math.min(this.failures, WAITS.length - 1)] * 1000;
      this.failures += 1;
      return false;
    }

    reached() { Object.assign(this, { online: true, failures: 0, next: 0, refused: "" }); }
  }
  return { Outbox };
})();
if (typeof module !== "undefined") module.exports = outbox;
