// Beat the team: the person is one agent and sees own readings only; afterwards everything is shown.
"use strict";
const playing = (() => {
  const { html, badge, plural } = views;
  const { word, action, said } = pictures;
  const all = (book, reading) => html("span", { class: "hint" }, pictures.each(book, reading) ? ` (${pictures.each(book, reading)})` : "");
  const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  // Games so far, kept in this browser where that is allowed.
  class Tally {
    constructor(name) {
      this.key = `icmape-app/${name}`;
      this.clear();
      try { Object.assign(this.counts, JSON.parse(localStorage.getItem(this.key)) || {}); } catch { /* nothing is kept */ }
    }
    clear() { this.counts = { games: 0, world: (this.counts || {}).world, right: 0, rounds: 0, networkRight: 0, networkRounds: 0 }; }
    keep() { try { localStorage.setItem(this.key, JSON.stringify(this.counts)); } catch { /* it lasts as long as the page */ } }
    add(own, network, next) { // next: the world of the next game
      const { counts } = this;
      counts.games += 1;
      counts.world = next;
      counts.right += own.right ? 1 : 0;
      counts.rounds += own.rounds;
      counts.networkRight += network.right ? 1 : 0;
      counts.networkRounds += network.rounds;
      this.keep();
    }
    view(reset) {
      const { games, right, rounds, networkRight, networkRounds } = this.counts;
      if (!games) return html("p", { class: "hint", id: "tally" }, "Your games and the network's in the same worlds are counted here.");
      const line = (who, wins, sum) => html("tr", {}, html("th", { scope: "row" }, who), html("td", {}, `${wins} of ${games}`), html("td", {}, (sum / games).toFixed(1)));
      const head = html("tr", {}, ...[plural(games, "world"), "right", "rounds, mean"].map((text) => html("th", { scope: "col" }, text)));
      return html("div", { id: "tally" }, html("table", {}, html("thead", {}, head), html("tbody", {}, line("with you", right, rounds), line("network alone", networkRight, networkRounds))), html("button", { type: "button", class: "small plain", onclick: reset }, "Start the tally again"));
    }
  }

  class Play {
    constructor(book, stage, seat, told) {
      Object.assign(this, { book, stage, seat, told, tally: new Tally(book.name), chosen: null });
      this.begin();
    }
    get kind() { return pictures.kindOf(this.book); }
    begin() {
      const { world } = this.tally.counts;
      this.game = new games.Game(this.book, world >= 0 && world < this.book.count ? world : this.book.first, this.seat);
      this.news = "";
      this.outcome = null;
      this.draw();
    }
    sit(seat) { this.seat = seat; this.begin(); }

    // -- one round

    take(own) {
      if (this.outcome || (own !== icmape.STOP && !this.game.allows(own))) return;
      const before = this.game.round, goes = this.game.play(own);
      if (goes) {
        const reading = this.game.readings[before][this.seat];
        this.news = `Round ${before + 1}: ${action(this.book, own)}, ${said(this.book, reading)}.`;
        this.draw();
        if (this.kind === "choices" || this.kind === "moves") this.focusOn(own);
      } else this.finish();
    }
    focusOn(own) { const button = this.stage.querySelector(`[data-action="${own}"]`); if (button) button.focus({ preventScroll: true }); }
    finish() {
      const network = games.networkGame(this.book, this.game.number);
      this.outcome = { own: this.game.result(), network: network.result(), networkGame: network };
      this.tally.add(this.outcome.own, this.outcome.network, this.book.after(this.game.number));
      this.told(this.game, network);
      this.draw();
      const title = this.stage.querySelector("#verdict");
      title.focus({ preventScroll: true });
      title.scrollIntoView({ block: "nearest" });
    }

    // -- drawing

    draw() {
      this.stage.replaceChildren(...(this.outcome ? this.afterwards() : this.during()));
    }
    during() {
      const { game, book, seat } = this, about = word(book);
      const status = html("p", { id: "status", role: "status" }, html("span", { id: "round" }, `Round ${game.round + 1}`), game.latest ? ": the last one. Press STOP." : "", this.news ? html("span", { id: "news" }, ` · ${this.news}`) : this.kind === "moves" ? html("span", { class: "hint" }, " · tap beside your dot to move") : "");
      const seats = html("label", { class: "seat" }, badge(seat, "small"), html("span", {}, `You are ${about} `), html("select", { id: "seat", "aria-label": `which ${about} you are`, disabled: game.round > 0, onchange: (event) => this.sit(Number(event.target.value)) }, ...Array.from({ length: book.agents }, (_, i) => html("option", { value: i, selected: i === seat }, i + 1))), html("span", {}, ` of ${book.agents}`));
      const which = html("p", { class: "hint", id: "world", "data-world": game.number }, `World ${game.number + 1} of ${book.count}`, game.number === book.first ? ": the first in which the network alone takes two rounds or more." : ".");
      const stop = html("button", { type: "button", class: "stop main", id: "stop", onclick: () => this.take(icmape.STOP) }, "STOP for everyone");
      const own = html("section", { class: "own" }, html("h2", {}, "Your readings"), game.round ? html("ol", { id: "own" }, ...game.actions.map((row, t) => html("li", {}, html("strong", {}, said(book, game.readings[t][seat])), html("span", { class: "hint" }, ` ${action(book, row[seat])}`), all(book, game.readings[t][seat])))) : html("p", { class: "hint" }, book.team.first ? `At the start: ${said(book, game.first[seat])}.` : "None yet."));
      const panel = html("div", { class: "panel-column" }, ...this.controls(), stop, own, this.tally.view(() => { this.tally.clear(); this.tally.keep(); this.draw(); }));
      return [html("div", { class: "between" }, seats, status), which, html("div", { class: `board ${this.kind}` }, ...this.pictureNow(), panel)];
    }
    // Of the picture, in pixels: all of a phone's width, and the wider column of a desk's.
    pictureWidth() {
      const wide = (document.getElementById("stage") || document.body).clientWidth;
      return wide >= 860 ? wide * 0.54 : wide;
    }
    pictureNow() {
      if (this.kind === "choices") return [];
      const { book, game, seat } = this, shades = pictures.ownShades(book, game, seat);
      const picture = pictures.picture(book, game, { seat, target: this.pick(), shades, width: this.pictureWidth(), label: "map of your readings" });
      if (this.kind === "moves") {
        picture.addEventListener("pointerup", (event) => this.tapAside(event, picture));
        return [html("div", { class: "picture" }, picture)];
      }
      const holder = html("div", { class: "picture", tabindex: 0, role: "application", id: "places", "aria-label": "map: arrow keys choose a place, Enter goes there", onkeydown: (event) => this.keyOnMap(event) }, picture);
      picture.addEventListener("pointerup", (event) => this.tap(event, picture));
      return [holder];
    }
    controls() {
      const { book, game } = this, names = book.team.actions, verb = book.team.display.verb;
      if (this.kind === "moves") return [this.pad()];
      if (this.kind !== "choices") {
        const go = html("button", { type: "button", class: "main", id: "go", onclick: () => this.take(this.pick()) }, `${verb} ${names[this.pick()]}`);
        const chosen = book.degrees ? ` Chosen: ${book.degrees[this.pick()]}.` : "";
        return [html("p", { class: "hint" }, this.kind === "places" ? `Tap a dot on the map.${chosen}` : "Tap a cell."), go];
      }
      const tried = (n) => game.actions.map((row, t) => (row[this.seat] === n ? said(book, game.readings[t][this.seat]) : null)).filter((text) => text !== null);
      return [html("div", { class: "choices" }, ...names.map((name, n) => {
        const past = tried(n);
        return html("button", { type: "button", class: "choice", "data-action": n, disabled: !game.allows(n) || game.latest, onclick: () => this.take(n) }, html("span", { class: "what" }, `${verb} ${name}`), html("span", { class: "past-readings" }, past.length ? past.slice(-6).join(", ") : "not tried"));
      }))];
    }
    pad() { // a button in the direction of each move
      const { moves } = this.book.team.display.actions;
      const where = ([down, right]) => `grid-area: ${down < 0 ? 1 : down > 0 ? 3 : 2} / ${right < 0 ? 1 : right > 0 ? 3 : 2}`;
      const signs = { "-1,0": "↑", "1,0": "↓", "0,-1": "←", "0,1": "→", "0,0": "•" };
      return html("div", { class: "pad", role: "group", "aria-label": "moves" }, ...moves.map((move, n) => html("button", { type: "button", "data-action": n, style: where(move), disabled: !this.game.allows(n) || this.game.latest, onclick: () => this.take(n) }, html("span", { class: "sign", "aria-hidden": "true" }, signs[move.map(Math.sign).join(",")] || ""), this.book.team.actions[n])));
    }

    // -- a place on a map

    pick() { // the chosen place: the last one, or that in the middle
      if (this.kind === "choices" || this.kind === "moves") return null;
      if (this.chosen === null) this.chosen = this.middle();
      return this.chosen;
    }
    at(n) {
      const { actions } = this.book.team.display;
      return actions.kind === "places" ? [-actions.coordinates[n][0], actions.coordinates[n][1]] : [Math.floor(actions.cells[n] / actions.columns), actions.cells[n] % actions.columns];
    }
    middle() {
      const all = this.book.team.actions.map((_, n) => this.at(n)), mean = [0, 1].map((axis) => all.reduce((sum, p) => sum + p[axis], 0) / all.length);
      return this.nearest(mean);
    }
    nearest([y, x], may = () => true) {
      const far = (n) => { const [b, a] = this.at(n); return may(n) ? (b - y) ** 2 + (a - x) ** 2 : Infinity; };
      return this.book.team.actions.reduce((best, _, n) => (far(n) < far(best) ? n : best), 0);
    }
    choose(n) {
      this.chosen = n;
      const focused = document.activeElement && document.activeElement.id;
      this.draw();
      if (focused === "places") this.stage.querySelector("#places").focus({ preventScroll: true });
    }
    tap(event, picture) { // the dot nearest to the finger
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
      if (this.kind === "cells") return this.choose(this.nearest([point.y - 0.5, point.x - 0.5]));
      const spots = [...picture.querySelectorAll(".spot")].map((spot) => [Number(spot.getAttribute("cx")), Number(spot.getAttribute("cy"))]);
      const far = spots.map(([x, y]) => (x - point.x) ** 2 + (y - point.y) ** 2);
      return this.choose(far.indexOf(Math.min(...far)));
    }
    tapAside(event, picture) { // a move towards the finger, if it is beside the agent
      const dot = picture.querySelector("circle.past"), point = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
      const [right, down] = [point.x - Number(dot.getAttribute("cx")), point.y - Number(dot.getAttribute("cy"))];
      const across = Math.abs(right) > Math.abs(down), near = Math.max(Math.abs(right), Math.abs(down)) < Number(dot.getAttribute("r")) * 1.5;
      const way = near ? [0, 0] : across ? [0, Math.sign(right)] : [Math.sign(down), 0];
      const n = this.towards(way);
      if (n >= 0) this.take(n);
    }
    towards(way) { return this.book.team.display.actions.moves.findIndex((move) => Math.sign(move[0]) === way[0] && Math.sign(move[1]) === way[1]); }
    keyOnMap(event) {
      const way = ARROWS[event.key];
      if (way) {
        event.preventDefault();
        event.stopPropagation();
        const here = this.at(this.pick()), ahead = (n) => { const p = this.at(n); return way[0] * (p[0] - here[0]) + way[1] * (p[1] - here[1]); };
        const aside = (n) => { const p = this.at(n); return Math.abs(way[1] * (p[0] - here[0])) + Math.abs(way[0] * (p[1] - here[1])); };
        const forward = this.book.team.actions.map((_, n) => n).filter((n) => ahead(n) > 1e-9 && aside(n) <= ahead(n) * 1.01);
        if (forward.length) this.choose(forward.reduce((a, b) => (ahead(a) + 2 * aside(a) <= ahead(b) + 2 * aside(b) ? a : b)));
      } else if (event.key === "Enter") {
        event.preventDefault();
        this.take(this.pick());
      }
    }

    // Keys that work anywhere on the page: true if one was used.
    key(event) {
      if (this.outcome) {
        if (event.key.toLowerCase() !== "n") return false;
        this.begin();
        return true;
      }
      if (event.key.toLowerCase() === "s") { this.take(icmape.STOP); return true; }
      const digit = Number(event.key) - 1;
      if (this.kind === "choices" && digit >= 0 && digit < Math.min(9, this.book.team.sizes.actions)) { this.take(digit); return true; }
      const way = ARROWS[event.key];
      if (this.kind === "moves" && way) {
        const n = this.towards(way);
        if (n >= 0) { this.take(n); return true; }
      }
      return false;
    }

    // -- everything, when it is over

    afterwards() {
      const { book, game, seat } = this, { own, network, networkGame } = this.outcome, truth = book.truths[game.number];
      const words = own.right && network.right
        ? ["A draw with the network.", "You beat the network.", "The network was faster."].at(Math.sign(network.rounds - own.rounds))
        : own.right ? "You beat the network." : network.right ? "The network was right." : "So was the network.";
      const others = (agents) => (agents.length ? `${word(book)}${agents.length > 1 ? "s" : ""} ${agents.map((i) => i + 1).join(", ")}` : "");
      const who = ({ stoppers }, at) => (stoppers.length === book.agents ? "everyone" : [stoppers.includes(at) ? "you" : "", others(stoppers.filter((i) => i !== at))].filter(Boolean).join(", "));
      const line = (title, result, at) => html("tr", { "data-right": String(result.right), "data-rounds": result.rounds }, html("th", { scope: "row" }, title), html("td", { class: result.right ? "good" : "bad" }, result.right ? "right" : "wrong"), html("td", {}, result.rounds), html("td", {}, answers.percent(result.answer.confidence)), html("td", {}, who(result, at)));
      const head = html("tr", {}, ...["", "answer", "rounds", "sure", "STOP by"].map((text) => html("th", { scope: "col" }, text)));
      const compared = html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "you and the network" }, html("table", { id: "compared" }, html("thead", {}, head), html("tbody", {}, line("with you", own, seat), line("network alone", network, null))));
      const facts = truth.facts.map(([name, text]) => html("span", {}, `${name} ${text}`));
      const posterior = [{ title: "network", answer: own.answer }];
      const scene = { shades: pictures.placesOf(book, own.answer), truth, answer: own.answer.decision, stoppers: game.stoppers, width: this.pictureWidth(), label: "what all agents did, the team's posterior and the truth" };
      const picture = pictures.picture(book, game, scene);
      const field = truth.fields.length && pictures.kindOf(book) === "places" ? this.fieldPicture(truth) : null;
      return [
        html("section", { class: `verdict ${own.right ? "was-right" : "was-wrong"}` }, html("h2", { id: "verdict", tabindex: -1 }, own.right ? "Right. " : "Wrong. ", words), html("p", {}, "Your team answered ", html("strong", {}, own.answer.name), book.team.answers.kind === "topk" ? (own.right ? ", one of the highest." : ", not one of the highest.") : own.right ? "." : [", the truth is ", html("strong", {}, truth.answer), "."])),
        html("button", { type: "button", class: "main", id: "again", onclick: () => this.begin() }, "Next world"),
        html("div", { class: "board" }, html("div", {}, picture ? html("div", { class: "picture" }, picture) : null, pictures.legend(book, truth, Boolean(picture)), picture ? html("p", { class: "hint" }, `Colour: ${pictures.shown(book)}, from everyone's readings; the stronger the more probable.`) : null, compared, this.tally.view(() => { this.tally.clear(); this.tally.keep(); this.draw(); })),
          html("div", { class: "panel-column" }, html("h2", {}, "What everyone's readings say"), pictures.shows(book), answers.view(book, posterior, truth), facts.length ? html("p", { class: "facts" }, html("span", { class: "hint" }, "In this world: "), ...facts) : null)),
        html("h2", {}, "Everyone's actions and readings, with you"), pictures.means(book), pictures.table(book, game, { seat, last: game.last, advice: game.advice }),
        html("details", {}, html("summary", {}, "The network's own game in this world"), pictures.table(book, networkGame, { last: networkGame.last })),
        field,
      ].filter(Boolean);
    }
    fieldPicture(truth) {
      const [name, values] = truth.fields[0], low = Math.min(...values), high = Math.max(...values);
      const shades = values.map((x) => (x - low) / (high - low || 1));
      return html("details", {}, html("summary", {}, "The hidden field"), html("div", { class: "picture" }, pictures.picture(this.book, { actions: [], readings: [] }, { shades, truth, width: this.pictureWidth(), label: `the hidden field: ${name}` })));
    }
  }
  return { Play, Tally };
})();
