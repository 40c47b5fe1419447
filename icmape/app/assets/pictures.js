// Pictures of a game: a map or a grid with what agents did, a posterior and the truth. The drawing is that of views.js.
"use strict";
const pictures = (() => {
  const { html, svg, mapView, gridView, parted, number, colour } = views;
  const kindOf = (book) => book.team.display.actions.kind;
  const word = (book) => book.team.display.agent;
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const action = (book, n) => (n === icmape.STOP ? "STOP" : book.team.actions ? book.team.actions[n] : String(n));

  // A reading in words: names of values where the problem has them, of many numbers the highest.
  function said(book, reading) {
    const { layout, display, parts } = book.team, position = display.actions.kind === "moves" ? display.actions.position : -1;
    return parted(layout, reading).map((value, k) => {
      if (k === position) return "";
      const names = (display.readings[k] || [])[2] || [], flat = [value].flat(Infinity);
      if (names.length && flat.length === 1) return names[flat[0] - [parts[k].low].flat(Infinity)[0]] || number(flat[0]);
      if (flat.length > 8) return Math.max(...flat) > 0 ? `highest ${number(Number(Math.max(...flat).toPrecision(3)))}` : "nothing";
      return flat.map((x) => number(Number(x.toPrecision(3)))).join(" · ");
    }).filter(Boolean).join("; ");
  }

  function star(x, y, size, label, kind) {
    const points = Array.from({ length: 10 }, (_, n) => {
      const r = n % 2 ? size * 0.45 : size, turn = (n * Math.PI) / 5 - Math.PI / 2;
      return `${(x + r * Math.cos(turn)).toFixed(4)},${(y + r * Math.sin(turn)).toFixed(4)}`;
    }).join(" ");
    return svg("polygon", { class: `truth truth-${kind}`, points, "stroke-width": size / 5 }, svg("title", {}, label));
  }
  const kinds = (marks) => [...new Set(marks.map(([, label]) => label))]; // what hidden things there are
  function legend(book, truth) {
    const names = kinds(truth.marks);
    return names.length ? html("p", { class: "legend" }, ...names.map((name, n) => html("span", { class: `truth-word-${n}` }, `★ ${name}`))) : null;
  }

  // scene: {entries: [{agent, action, reading}], seat, target, shades, truth, label}; shades: a number from 0 to 1 for each place
  const PICTURES = {
    places(book, { entries, target, seat, shades, truth, label }) {
      const { display, actions } = book.team, about = book.team;
      const marks = entries.map((entry) => ({ action: entry.action, agent: entry.agent, text: seat === undefined ? "" : views.brief(entry.reading, about) }));
      const at = target === null || target === undefined ? null : { action: target, agent: seat || 0 };
      const drawn = mapView({ display, map: book.people.map, marks, target: at, shades, label, names: actions });
      const spots = drawn.querySelectorAll(".spot"), unit = Number(drawn.getAttribute("viewBox").split(" ")[2]) / 100;
      if (truth) for (const [place, name] of truth.marks) drawn.append(star(Number(spots[place].getAttribute("cx")), Number(spots[place].getAttribute("cy")), unit * 2.2, name, kinds(truth.marks).indexOf(name)));
      return drawn;
    },
    cells(book, { entries, target, shades, truth, label }) {
      const { rows, columns, cells } = book.team.display.actions;
      const place = (n) => ({ row: Math.floor(cells[n] / columns), column: cells[n] % columns });
      const spots = entries.map((entry) => ({ ...place(entry.action), agent: entry.agent, text: entry.agent + 1 }));
      return starred(gridView({ rows, columns, spots, target: target === null || target === undefined ? null : place(target), shades, label }), book, truth);
    },
    moves(book, { entries, seat, shades, truth, label, walks }) {
      const { rows, columns, window: seen } = book.team.display.actions;
      const ends = walks.map((walk, agent) => [walk[walk.length - 1], agent]).filter(([, agent]) => seat === undefined || agent === seat);
      const size = seen === null ? [1, 1] : book.team.parts[seen].shape;
      const windows = seat === undefined ? [] : ends.map(([[row, column]]) => ({ row: row - (size[0] >> 1), column: column - (size[1] >> 1), rows: size[0], columns: size[1] }));
      const spots = ends.map(([[row, column], agent]) => ({ row, column, agent, text: agent + 1 }));
      const drawn = gridView({ rows, columns, spots, windows, shades, label });
      for (const [, agent] of ends) drawn.insertBefore(way(walks[agent], agent, columns), drawn.querySelector(".past"));
      return starred(drawn, book, truth);
    },
    choices: () => null,
  };
  function starred(drawn, book, truth) {
    const { columns } = book.team.display.actions;
    if (truth && book.team.display.answers) for (const [place, name] of truth.marks) drawn.append(star((place % columns) + 0.5, Math.floor(place / columns) + 0.5, Math.max(columns / 32, 0.5), name, kinds(truth.marks).indexOf(name)));
    return drawn;
  }
  function way(walk, agent, columns) {
    const aside = ((agent % 5) - 1) * columns / 160;
    const line = svg("polyline", { class: "walk", points: walk.map(([r, c]) => `${c + 0.5 + aside},${r + 0.5 + aside}`).join(" "), "stroke-width": columns / 90 });
    line.style.stroke = colour(agent);
    return line;
  }

  // Rows and columns of all agents, from their starts; nothing where actions are no moves.
  function walksOf(book, { actions, readings, first }) {
    const shown = book.team.display.actions;
    if (shown.kind !== "moves") return [];
    const at = (reading) => parted(book.team.layout, reading)[shown.position].flat(Infinity);
    return shown.starts.map((start, agent) => [first ? at(first[agent]) : start, ...actions.map((_, t) => at(readings[t][agent]))]);
  }
  const entriesOf = ({ actions, readings }, only) => actions.flatMap((row, t) => row.map((action, agent) => ({ round: t, agent, action, reading: readings[t][agent] }))).filter((entry) => only === undefined || entry.agent === only);

  function picture(book, history, scene) {
    const label = scene.label || "what all agents did";
    return PICTURES[kindOf(book)](book, { ...scene, label, entries: entriesOf(history, scene.seat), walks: walksOf(book, history) });
  }
  // What one agent has seen around it, as shades, where its readings are windows.
  function ownShades(book, history, seat) {
    const shown = book.team.display.actions;
    if (shown.kind !== "moves" || shown.window === null) return null;
    const rows = [...(history.first ? [history.first[seat]] : []), ...history.readings.map((row) => row[seat])];
    return views.seenAround(shown, book.team.parts, rows.map((reading) => parted(book.team.layout, reading)));
  }
  // Probabilities as shades of places, if answers are places.
  const placesOf = (book, answer) => (book.team.display.answers ? Array.from(answer.probabilities) : null);

  // A table of rounds: what agents did and read. `cell` may replace the text of a reading.
  function table(book, history, { seat, last, advice, cell } = {}) {
    const agents = Array.from({ length: book.agents }, (_, i) => i);
    const head = html("tr", {}, html("th", { scope: "col" }, "round"), ...agents.map((i) => html("th", { scope: "col" }, views.badge(i, "small"), i === seat ? "you" : `${word(book)} ${i + 1}`)), advice ? html("th", { scope: "col" }, "network, in your seat") : null);
    const body = history.actions.map((row, t) => html("tr", {}, html("th", { scope: "row" }, t + 1), ...agents.map((i) => html("td", {}, cell ? cell(t, i) : html("span", {}, html("strong", {}, said(book, history.readings[t][i])), html("span", { class: "hint what-done" }, action(book, row[i]))))), advice ? html("td", { class: "hint" }, action(book, advice[t])) : null));
    if (last) body.push(html("tr", {}, html("th", { scope: "row" }, history.actions.length + 1), ...agents.map((i) => html("td", {}, last[i] === icmape.STOP ? html("strong", { class: "stop-word" }, "STOP") : html("span", { class: "hint" }, "not done"))), advice ? html("td", { class: "hint" }, advice.length > history.actions.length ? action(book, advice[history.actions.length]) : "") : null));
    return html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "all rounds" }, html("table", {}, html("thead", {}, head), html("tbody", {}, ...body)));
  }

  return { picture, table, said, ownShades, placesOf, legend, action, word, capital, kindOf };
})();
