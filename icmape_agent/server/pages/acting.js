// What an agent does next, from its own entries alone. For pages, and for Node in tests.
//
// An entry is {type: "first" | "tell" | "missed" | "stop", round, action, reading}, as in a session's journal. The rules
// are those of sessions: a reading beats a miss, the first reading of a round counts, and an agent acts on the rounds
// before its first open one. A team that takes no missing readings acts after a missed round as it did before it.
"use strict";
const acting = (() => {
  function collected(entries) {
    const rounds = new Map();
    let first = null, stop = null;
    for (const entry of entries) {
      const known = rounds.get(entry.round);
      if (entry.type === "first") first = first || entry;
      else if (entry.type === "stop") stop = stop || entry;
      else if (!known || (known.type === "missed" && entry.type === "tell")) rounds.set(entry.round, entry);
    }
    let open = 0;
    while (rounds.has(open)) open += 1;
    return { rounds, first, stop, open };
  }

  class Acting {
    constructor(team, agent) { Object.assign(this, { team, agent, played: [], actor: null }); }

    // {round, stop, action, needsFirst}: the first open round, and what to do in it
    next(entries) {
      const { rounds, first, stop, open } = collected(entries), found = { round: open, stop: false, needsFirst: false };
      if (stop) return { ...found, stop: true, round: stop.round };
      if (this.team.first && !first) return { ...found, needsFirst: true };
      if (open >= this.team.sizes.horizon - 1) return { ...found, stop: true };
      const history = [JSON.stringify(first && first.reading)];
      for (let n = 0; n < open; n++) history.push(rounds.get(n));
      const action = this.after(history, first).act();
      return action === icmape.STOP ? { ...found, stop: true } : { ...found, action };
    }

    // The agent after a history; one that is longer than the last goes on from there.
    after(history, first) {
      const keys = history.map((entry) => (typeof entry === "string" ? entry : JSON.stringify([entry.type, entry.action, entry.reading])));
      if (!this.actor || this.actor.stopped || !this.played.every((key, n) => key === keys[n])) {
        this.actor = this.team.agent(this.agent, first ? first.reading : undefined);
        this.played = [keys[0]];
      }
      for (let n = this.played.length; n < keys.length; n++) {
        this.take(history[n]);
        this.played.push(keys[n]);
      }
      return this.actor;
    }

    // One round: a reading or a miss. One whose action was not allowed is a miss without an action.
    take(entry) {
      try {
        if (entry.type === "tell") this.actor.see(entry.action, entry.reading);
        else if (this.takesMissing) this.actor.missed(entry.action);
      } catch {
        if (entry.action !== undefined) this.take({ type: "missed" });
      }
    }
    get takesMissing() { return this.team.takesMissing("agent") && this.team.takesMissing("inference"); }

    // Whether an action may be taken in the round that is open
    allows(action) { return !this.actor || Boolean(this.actor.allowed[action]); }
  }
  return { Acting, collected };
})();
if (typeof module !== "undefined") module.exports = acting;
