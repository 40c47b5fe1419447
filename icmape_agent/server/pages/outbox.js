// Keeps what an agent told in the browser, and sends it when there is a network.
//
// An entry is stored before it is shown. It has an id, so that a repeat is the same tell. It is sent after a few
// seconds, in which it can be corrected; what is stored and not sent can be corrected too.
"use strict";
const outbox = (() => {
  const WAITS = [1, 2, 5, 10, 20]; // seconds between attempts
  const PAUSED = 1e15; // milliseconds: not before it is resumed
  const same = (one, other) => ["type", "round", "action"].every((name) => one[name] === other[name]) &&
    JSON.stringify(one.reading) === JSON.stringify(other.reading);

  function newId() {
    return Array.from(crypto.getRandomValues(new Uint8Array(12)), (n) => n.toString(16).padStart(2, "0")).join("");
  }

  class Outbox {
    constructor({ name, storage, post, changed, hold, clock = Date.now }) {
      Object.assign(this, { name, storage, post, changed, hold, clock, busy: false, failures: 0, next: 0, online: true, refused: "" });
      this.load();
    }

    load() {
      try { this.entries = JSON.parse(this.storage.getItem(this.name)) || []; }
      catch { this.entries = []; }
    }

    // Stores all entries; throws if the browser keeps nothing.
    save(entries) {
      const text = JSON.stringify(entries);
      this.storage.setItem(this.name, text);
      if (this.storage.getItem(this.name) !== text) throw new Error("this browser stores nothing");
      this.entries = entries;
      this.changed();
    }

    live() { return this.entries.filter((entry) => entry.state !== "refused"); }
    unsent() { return this.live().filter((entry) => entry.state !== "sent"); }
    last() { return this.live().filter((entry) => entry.type !== "stop").sort((a, b) => (a.round ?? -1) - (b.round ?? -1)).pop(); }
    canCorrect(entry) { return Boolean(entry) && entry.state === "kept" && !this.busy; }

    record(entry) {
      const time = new Date(this.clock()).toISOString();
      const added = { ...entry, id: newId(), time, state: "kept", from: this.clock() + this.hold * 1000 };
      const released = this.live().length ? this.entries.map((old) => (old.state === "kept" ? { ...old, from: 0 } : old)) : this.entries;
      this.save([...released, added]);
      return added;
    }

    // While an entry is corrected, it is not sent, nor is a stop that followed from it.
    pause(id) {
      this.save(this.entries.map((entry) => (entry.state === "kept" && (entry.id === id || entry.type === "stop") ? { ...entry, from: PAUSED } : entry)));
    }
    resume() {
      const from = this.clock() + this.hold * 1000;
      if (this.entries.some((entry) => entry.from === PAUSED)) this.save(this.entries.map((entry) => (entry.from === PAUSED ? { ...entry, from } : entry)));
    }

    // Another content for an entry that was not sent, or (null) none; a stop that followed from it is dropped.
    correct(id, content) {
      const kept = this.entries.filter((entry) => !(entry.type === "stop" && entry.state === "kept") && entry.id !== id);
      this.save(kept);
      return content ? this.record(content) : null;
    }

    // The journal's entries of this agent: they were recorded, whoever sent them.
    merge(recorded) {
      let entries = [...this.entries], moved = false;
      for (const entry of recorded) {
        const at = entries.findIndex((own) => own.state !== "refused" && own.type === entry.type && own.round === entry.round);
        const own = entries[at];
        if (own && own.state === "sent") continue;
        moved = true;
        if (own && !same(own, entry)) entries[at] = { ...own, state: "refused", error: "the journal holds another one for this round, which counts" };
        if (own && same(own, entry)) entries[at] = { ...own, state: "sent" };
        else entries.push({ ...entry, state: "sent" });
      }
      if (moved) this.save(entries);
    }

    mark(id, change) { this.save(this.entries.map((entry) => (entry.id === id ? { ...entry, ...change } : entry))); }

    due() { return this.entries.filter((entry) => entry.state === "kept" && entry.from <= this.clock()); }

    // Sends what is due, the oldest first. A failure is tried again later.
    async flush() {
      if (this.busy || this.refused || this.clock() < this.next) return;
      this.busy = true;
      try {
        for (let entry = this.due()[0]; entry; entry = this.due()[0]) {
          if (!(await this.deliver(entry))) break;
        }
      } finally { this.busy = false; }
      this.changed();
    }

    async deliver(entry) {
      const { state, from, error, ...message } = entry;
      let answer;
      try { answer = await this.post(message); }
      catch { return this.failed(false); }
      if (answer.status === 401) { this.refused = answer.text; this.online = true; return false; }
      if (answer.status === 429 || answer.status >= 500 || answer.status === 408) return this.failed(true);
      this.reached();
      this.mark(entry.id, answer.ok ? { state: "sent" } : { state: "refused", error: answer.text });
      return true;
    }

    failed(online) {
      this.online = online;
      this.next = this.clock() + WAITS[Math.min(this.failures, WAITS.length - 1)] * 1000;
      this.failures += 1;
      return false;
    }

    reached() { Object.assign(this, { online: true, failures: 0, next: 0 }); }
  }
  return { Outbox };
})();
if (typeof module !== "undefined") module.exports = outbox;
