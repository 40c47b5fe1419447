// What if: any reading of a game may be changed; the posterior and the agents' scores of STOP follow.
"use strict";
const whatif = (() => {
  const { html, svg, badge, colour } = views;
  const { word, action, said } = pictures;
  const short = (value) => (Array.isArray(value) ? value.map(short) : Number(value.toPrecision(5))); // as many digits as 16 bits hold
  const copied = (value) => JSON.parse(JSON.stringify(value));

  class WhatIf {
    constructor(book, stage, last) {
      Object.assign(this, { book, stage, last, exact: book.hasExact ? new games.Exact(book) : null, number: last ? last.game.number : book.first, asked: 0 });
      if (last && last.game.round) this.take("yours");
      else this.world(this.number);
    }
    take(which) {
      this.which = which;
      const game = which === "yours" ? this.last.game : this.last && this.last.network.number === this.number ? this.last.network : games.networkGame(this.book, this.number);
      Object.assign(this, { game, kept: copied(game.readings), history: { actions: game.actions, readings: copied(game.readings), first: game.first }, rounds: game.round, open: null });
      this.draw();
    }
    // The network's game in this world, or in the next one in which it takes a reading.
    world(number) {
      for (let tried = 0; tried < this.book.count; tried++) {
        this.number = (number + tried) % this.book.count;
        this.take("network");
        if (this.game.round) break;
      }
    }
    changed(t, i) { return JSON.stringify(this.kept[t][i]) !== JSON.stringify(this.history.readings[t][i]); }
    get anyChange() { return JSON.stringify(this.kept) !== JSON.stringify(this.history.readings); }

    // -- drawing: what is typed into stays, the rest is drawn again

    draw() {
      const { book, game } = this;
      const pick = (name, text, disabled) => html("button", { type: "button", class: "small", "aria-pressed": String(this.which === name), disabled, onclick: () => this.take(name) }, text);
      const source = html("div", { class: "row" }, pick("network", "The network's game", false), pick("yours", "Your last game", !this.last || !this.last.game.round), html("button", { type: "button", class: "small", id: "next-world", onclick: () => this.world(this.number + 1) }, "Another world"), html("button", { type: "button", class: "small", id: "undo", onclick: () => this.take(this.which) }, "Undo all"));
      const range = html("input", { type: "range", id: "rounds", min: 0, max: game.round, value: this.rounds, "aria-label": "rounds that count", oninput: (event) => { this.rounds = Number(event.target.value); this.result(); } });
      this.label = html("span", { id: "rounds-text" });
      this.grid = html("div", {});
      this.editor = html("div", { class: "editor", hidden: true, id: "editor" });
      this.results = html("div", { id: "results" });
      this.stage.replaceChildren(source, html("h2", {}, "Readings: press one to change it"), ...[pictures.means(book, "press it")].filter(Boolean), this.grid, this.editor, html("label", { class: "range" }, this.label, range), this.results);
      this.drawGrid();
      this.result();
    }
    drawGrid() {
      const cell = (t, i) => html("button", { type: "button", class: this.changed(t, i) ? "cell-button changed" : "cell-button", "data-round": t, "data-agent": i, "aria-pressed": String(Boolean(this.open) && this.open[0] === t && this.open[1] === i), onclick: () => this.press(t, i) }, html("strong", {}, said(this.book, this.history.readings[t][i])), html("span", { class: "hint what-done" }, action(this.book, this.history.actions[t][i])));
      this.grid.replaceChildren(this.history.actions.length ? pictures.table(this.book, this.history, { cell }) : html("p", { class: "hint" }, "This game ended before any reading."));
    }
    focusCell(t, i) {
      const button = this.grid.querySelector(`[data-round="${t}"][data-agent="${i}"]`);
      if (button) button.focus({ preventScroll: true });
    }

    // A reading of two values is switched; any other is edited below the table.
    press(t, i) {
      const parts = this.book.team.parts.map((_, k) => new fields.Part(this.book.team, i, k));
      if (parts.length === 1 && parts[0].count === 1 && parts[0].few && parts[0].high - parts[0].low === 1) {
        const [value] = views.parted(this.book.team.layout, this.history.readings[t][i]);
        this.write(t, i, [parts[0].low + parts[0].high - value]);
        this.focusCell(t, i);
        return;
      }
      const same = this.open && this.open[0] === t && this.open[1] === i;
      this.open = same ? null : [t, i];
      this.drawGrid();
      this.editor.hidden = same;
      if (same) return;
      this.edit(t, i, parts);
    }
    edit(t, i, parts) {
      const values = views.parted(this.book.team.layout, this.history.readings[t][i]), { actions } = this.book.team.display;
      const wrong = html("p", { class: "bad", role: "alert" });
      const drawn = parts.map((part, n) => {
        const node = part.draw();
        part.write(short(values[n]));
        if (actions.kind === "moves" && n === actions.position) {
          [values[n]].flat(Infinity).forEach((value, k) => part.fix(k, value));
          node.hidden = true;
        }
        return node;
      });
      const apply = () => {
        try {
          this.write(t, i, parts.map((part) => part.read()));
          wrong.textContent = "";
        } catch (error) { wrong.textContent = error.message; }
      };
      const form = html("form", { onsubmit: (event) => { event.preventDefault(); apply(); }, oninput: apply, onclick: (event) => { if (event.target.closest("button.choice, button.cell")) apply(); } }, ...drawn);
      this.editor.replaceChildren(html("p", {}, badge(i, "small"), `${word(this.book)} ${i + 1}, round ${t + 1}: ${action(this.book, this.history.actions[t][i])}`), form, wrong);
      const first = form.querySelector("input:not(:disabled), button:not(:disabled)");
      if (first) first.focus({ preventScroll: true });
    }
    write(t, i, values) {
      this.history.readings[t][i] = fields.laid(this.book.team.layout, values);
      this.drawGrid();
      this.result();
    }

    // -- what follows from the readings

    result() {
      const { book, rounds } = this, asked = ++this.asked;
      this.label.textContent = `After round ${rounds} of ${this.game.round}`;
      const answer = games.network(book, this.history, rounds), margins = games.margins(book, this.history);
      const show = (exact) => this.results.replaceChildren(...this.shown(answer, exact, margins));
      if (!this.exact) return show(null);
      show(undefined);
      setTimeout(() => { if (this.asked === asked) show(this.exact.after(this.history, rounds)); }, 20);
      return undefined;
    }
    shown(answer, exact, margins) {
      const { book } = this, truth = book.truths[this.number], possible = Boolean(exact) && Number.isFinite(exact.confidence);
      const posteriors = [{ title: "network", answer }, ...(possible ? [{ title: "exact Bayes", answer: exact }] : [])];
      const past = { actions: this.history.actions.slice(0, this.rounds), readings: this.history.readings.slice(0, this.rounds), first: this.history.first };
      const maps = book.team.display.answers ? posteriors.map((one) => html("figure", { class: "posterior-map" }, pictures.picture(book, past, { shades: pictures.placesOf(book, one.answer), truth, answer: one.answer.decision, width: Math.min((document.getElementById("stage") || document.body).clientWidth, 560), label: `posterior, ${one.title}` }), posteriors.length > 1 ? html("figcaption", { class: "hint" }, one.title) : null)) : [];
      const sure = html("p", { id: "answer" }, "Answer: ", html("strong", {}, answer.name), ` · network ${answers.percent(answer.confidence)} sure`, possible ? `, exact ${answers.percent(exact.confidence)}` : exact === undefined ? ", exact: computing…" : "");
      const contradiction = exact && !possible ? html("p", { class: "warning", id: "contradiction" }, "No answer explains all of these readings: the exact posterior does not exist.") : null;
      const none = this.exact ? null : html("p", { class: "hint" }, "There is no exact posterior for this problem: only the network's is shown.");
      return [
        html("div", { class: "board" },
          html("div", {}, html("h2", {}, "Posterior"), sure, contradiction, pictures.shows(book), answers.view(book, posteriors, truth), none, pictures.legend(book, truth, true), maps.length ? html("div", { class: "maps" }, ...maps) : null),
          html("div", {}, html("h2", {}, "Who would stop"), html("p", { class: "hint" }, "Score of STOP less that of the best action, of each agent from its own readings. Above 0 it stops for everyone."), this.chart(margins), this.wishes(margins))),
      ];
    }
    wishes(margins) {
      const row = (values, i) => {
        const value = values[this.rounds], learned = this.book.team.stop.kind === "learned";
        const text = !learned ? "stops at a fixed time" : value > 0 ? "STOP" : `goes on: ${action(this.book, this.choiceOf(i))}`;
        return html("tr", { "data-margin": value }, html("th", { scope: "row" }, badge(i, "small"), `${word(this.book)} ${i + 1}`), html("td", {}, `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`), html("td", { class: value > 0 && learned ? "stop-word" : "" }, text));
      };
      return html("table", { id: "wishes" }, html("tbody", {}, ...margins.map(row)));
    }
    choiceOf(i) {
      const { actions, readings, first } = this.history, mind = this.book.team.agent(i, first && first[i]);
      for (let t = 0; t < this.rounds; t++) mind.see(actions[t][i], readings[t][i]);
      return mind.choice();
    }
    chart(margins) { // a line for each agent over the rounds
      const width = 360, height = 150, left = 34, bottom = 22, top = 8, all = margins.flat().concat(0.5);
      const low = Math.max(Math.min(...all), -12), high = Math.min(Math.max(...all), 12), most = Math.max(margins[0].length - 1, 1);
      const x = (t) => left + (t / most) * (width - left - 12), y = (v) => top + ((high - Math.min(Math.max(v, low), high)) / (high - low || 1)) * (height - top - bottom);
      const lines = margins.map((values, i) => {
        const line = svg("polyline", { class: "lead", points: values.map((v, t) => `${x(t)},${y(v)}`).join(" "), "stroke-width": 2.5 });
        line.style.stroke = colour(i);
        const dots = values.map((v, t) => {
          const dot = svg("circle", { cx: x(t), cy: y(v), r: 3.2, stroke: "var(--on-agent)", "stroke-width": 0.8 });
          dot.style.fill = colour(i);
          return dot;
        });
        return svg("g", {}, line, ...dots);
      });
      const ticks = [low, 0, high].filter((v, n, list) => list.indexOf(v) === n && (v === 0 || Math.abs(y(v) - y(0)) > 14)).map((v) => svg("text", { x: left - 5, y: y(v) + 4, "text-anchor": "end" }, v.toFixed(v ? 1 : 0)));
      const rounds = Array.from({ length: most + 1 }, (_, t) => t).filter((t) => most <= 10 || t % 5 === 0).map((t) => svg("text", { x: x(t), y: height - 5, "text-anchor": "middle" }, t));
      return svg("svg", { class: "margins", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "score of STOP less that of the best action, by round" }, svg("line", { class: "axis", x1: left, x2: width - 8, y1: y(0), y2: y(0) }), svg("line", { class: "now", x1: x(this.rounds), x2: x(this.rounds), y1: top, y2: height - bottom }), ...lines, ...ticks, ...rounds);
    }
  }
  return { WhatIf };
})();
