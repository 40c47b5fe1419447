// Plays a team in worlds that were drawn beforehand: agents of the network and one person, or agents of the network only.
// No page is needed: this runs in Node, too. It needs runtime.js and fields.js.
"use strict";
const games = (() => {
  const product = (sizes) => sizes.reduce((a, b) => a * b, 1);

  // A team with its worlds, from what `icmape app` wrote.
  class Book {
    constructor(exported) {
      this.team = icmape.load(exported);
      Object.assign(this, { name: exported.name, people: exported.people, delta: exported.delta, truths: exported.worlds.truths, count: exported.worlds.count });
      this.nameByTowns();
      this.arrays = {};
      for (const part of ["world", "state", "first", "draws"]) {
        this.arrays[part] = exported.worlds[part].map((array) => ({ values: icmape.decoded(array), shape: array.shape }));
      }
    }
    // Places on the earth by the nearest town on the map, as in reports.
    nameByTowns() {
      const { actions, answers, display } = this.team;
      if (!this.people.near.length) return;
      this.degrees = actions;
      this.team.actions = this.people.near;
      if (display.answers && answers.names) answers.names = this.people.near;
    }
    get agents() { return this.team.sizes.agents; }
    get hasExact() { return "exact.add" in this.team.functions; }
    of(part, ...place) { // the arrays of a world, or of a round in it
      return this.arrays[part].map(({ values, shape }) => {
        const size = product(shape.slice(place.length));
        const first = place.reduce((sum, n, axis) => sum * shape[axis] + n, 0);
        return values.slice(first * size, (first + 1) * size);
      });
    }
    readings(joint) { // one reading an agent, from arrays of all agents
      return Array.from({ length: this.agents }, (_, agent) => fields.laid(this.team.layout, this.team.parts.map((part, k) => {
        const size = product(part.shape);
        return fields.folded(Array.from(joint[k].slice(agent * size, (agent + 1) * size)), part.shape);
      })));
    }
    // The world of the first game: the first in which the network takes two rounds of readings or more; if there is
    // none, the first in which it takes one.
    get first() {
      if (this.start === undefined) this.start = [2, 1, 0].map((rounds) => this.search(0, rounds)).find((n) => n !== null);
      return this.start;
    }
    // The next world in which the network takes a reading: elsewhere a game would be over before it starts.
    after(number) { return this.search(number + 1, 1) ?? (number + 1) % this.count; }
    search(from, rounds) {
      for (let n = 0; n < this.count; n++) if (lasts(this, (from + n) % this.count, rounds)) return (from + n) % this.count;
      return null;
    }
    right(number, decision) {
      const truth = this.truths[number].hypothesis;
      if (this.team.answers.kind === "topk") return truth.includes(decision[0]);
      return truth.length === decision.length && truth.every((value, n) => value === decision[n]);
    }
  }

  // The score of STOP less that of the best action.
  function margin(agent) {
    const best = Math.max(...Array.from(agent.scores.slice(0, -1)).filter((_, action) => agent.offered[action]));
    return agent.scores[agent.scores.length - 1] - best;
  }

  // One game in one world. `seat` is the person's agent; null: the network plays all of them.
  class Game {
    constructor(book, number, seat = null) {
      Object.assign(this, { book, number, seat, actions: [], readings: [], over: false, stoppers: [], last: null });
      this.state = book.of("state", number);
      this.world = book.of("world", number);
      const first = book.readings(book.of("first", number));
      this.first = book.team.first ? first : undefined;
      this.minds = first.map((reading, agent) => book.team.agent(agent, this.first && reading));
      this.advice = []; // what the network would have chosen in the person's seat
    }
    get round() { return this.actions.length; }
    get latest() { return this.round >= this.book.team.sizes.horizon - 1; } // everybody must stop
    allows(action) { return Boolean(this.minds[this.seat].allowed[action]); }
    choices(own) {
      return this.minds.map((mind, agent) => (agent === this.seat && !this.latest ? own : mind.choice()));
    }
    // One round in which the person does this. True if the game goes on.
    play(own) {
      if (this.over) return false;
      if (this.seat !== null) this.advice.push(this.minds[this.seat].choice());
      const chosen = this.choices(own);
      this.stoppers = chosen.flatMap((choice, agent) => (choice === icmape.STOP ? [agent] : []));
      if (this.stoppers.length) {
        Object.assign(this, { over: true, last: chosen });
        return false;
      }
      const { team } = this.book, draws = this.book.of("draws", this.number, this.round);
      const found = team.fn("step").call(...draws, ...this.world, ...this.state, Int32Array.from(chosen));
      this.state = found.slice(0, this.state.length);
      const readings = this.book.readings(found.slice(this.state.length));
      this.actions.push(chosen);
      this.readings.push(readings);
      this.minds.forEach((mind, agent) => mind.see(chosen[agent], readings[agent]));
      return true;
    }
    // The team's answer, and whether it is right.
    result() {
      const answer = this.book.team.posterior(this.actions, this.readings, this.first);
      return { rounds: this.round, answer, right: this.book.right(this.number, answer.decision), stoppers: this.stoppers };
    }
  }

  // Whether the network takes at least so many rounds of readings in a world.
  function lasts(book, number, rounds) {
    const game = new Game(book, number);
    while (game.round < rounds && game.play());
    return game.round >= rounds;
  }

  function networkGame(book, number) {
    const game = new Game(book, number);
    while (game.play());
    return game;
  }

  // What could have been read: the posterior and the scores of STOP after every round of a history.
  function margins(book, { actions, readings, first }) {
    return Array.from({ length: book.agents }, (_, agent) => {
      const mind = book.team.agent(agent, first && first[agent]), found = [margin(mind)];
      actions.forEach((row, t) => {
        mind.see(row[agent], readings[t][agent]);
        found.push(margin(mind));
      });
      return found;
    });
  }
  const network = (book, { actions, readings, first }, rounds) => book.team.posterior(actions.slice(0, rounds), readings.slice(0, rounds), first);

  // Exact Bayes. States of rounds whose readings did not change are kept.
  class Exact {
    constructor(book) { Object.assign(this, { book, known: [] }); }
    joint(row) { return this.book.team.stacked(row.map((reading, agent) => this.book.team.reading(agent, reading))); }
    after({ actions, readings, first }, rounds) {
      const { team } = this.book, keys = [JSON.stringify(first || null)];
      for (let t = 0; t < rounds; t++) keys.push(JSON.stringify([actions[t], readings[t]]));
      let same = 0;
      while (same < this.known.length && same < keys.length && this.known[same].key === keys[same]) same += 1;
      this.known.length = same;
      for (let t = same; t < keys.length; t++) {
        const nothing = Array.from({ length: this.book.agents }, () => team.nothing());
        const state = t === 0
          ? team.fn("exact.begin").call(...(first ? this.joint(first) : team.stacked(nothing)))
          : team.fn("exact.add").call(Int32Array.from(actions[t - 1]), ...this.joint(readings[t - 1]), ...this.known[t - 1].state);
        this.known.push({ key: keys[t], state });
      }
      const [scores, probabilities, decision, [confidence]] = team.fn("exact.answer").call(...this.known[rounds].state);
      return { scores, probabilities, decision: Array.from(decision), confidence, name: team.answerName(decision) };
    }
  }

  return { Book, Game, Exact, networkGame, margins, margin, network };
})();
if (typeof module !== "undefined") module.exports = games;
