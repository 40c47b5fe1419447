// Posteriors as bars: the network's, and the exact one beside it where there is one.
"use strict";
const answers = (() => {
  const { html } = views;
  const FEW = 6; // answers that are listed
  const LEAST = 0.005; // probability of an answer that is listed
  const percent = (p) => (p > 0.995 ? "> 99 %" : p < 0.001 ? "< 0.1 %" : `${(100 * p).toFixed(p < 0.0995 ? 1 : 0)} %`);
  const COLOURS = ["var(--method-ours)", "var(--method-exact)"];

  function bar(p, n, label) {
    const fill = html("span", { class: "fill" });
    fill.style.width = `${(100 * p).toFixed(1)}%`;
    fill.style.background = COLOURS[n];
    return html("span", { class: "bar", role: "img", "aria-label": `${label}: ${percent(p)}` }, html("span", { class: "track" }, fill), html("span", { class: "number" }, percent(p)));
  }
  const row = (name, isTrue, values, titles) => html("div", { class: isTrue ? "answer-row is-true" : "answer-row" }, html("span", { class: "answer-name" }, isTrue ? html("span", { title: "the truth" }, "○ ") : "", name), html("span", { class: "bars" }, ...values.map((p, n) => (p === null ? null : bar(p, n, `${name}, ${titles[n]}`)))));

  // posteriors: [{title, answer}], the network's first; truth: marks the right ones, or null
  function view(book, posteriors, truth) {
    const titles = posteriors.map(({ title }) => title), shown = posteriors.map(({ answer }) => Array.from(answer.probabilities));
    const key = posteriors.length > 1 ? html("p", { class: "legend" }, ...titles.map((title, n) => {
      const dot = html("span", { class: "dot" });
      dot.style.background = COLOURS[n];
      return html("span", {}, dot, title);
    })) : null;
    const rows = book.team.answers.kind === "factored" ? parts(book, shown, titles, truth) : ranked(book, shown, titles, truth);
    return html("div", { class: "posterior" }, key, ...rows);
  }
  function parts(book, shown, titles, truth) {
    const { parts: names, values } = book.people, width = values.length;
    return names.map((name, part) => html("section", { class: "part-answer" }, html("h3", {}, name), ...values.map((value, n) => row(value, truth && truth.hypothesis[part] === n, shown.map((p) => p[part * width + n]), titles))));
  }
  function ranked(book, shown, titles, truth) {
    const best = shown.map((p) => p.map((_, n) => n).sort((a, b) => p[b] - p[a] || a - b).slice(0, FEW).filter((n, place) => !place || p[n] >= LEAST));
    const right = truth && book.team.answers.kind === "categorical" ? truth.hypothesis : [];
    const listed = [...new Set([...best.flatMap((order, n) => (n ? order.slice(0, 3) : order)), ...right])].sort((a, b) => shown[0][b] - shown[0][a]);
    const name = (n) => (book.team.answers.names ? book.team.answers.names[n] : String(n));
    return listed.map((n) => row(name(n), truth && truth.hypothesis.includes(n), shown.map((p) => p[n]), titles));
  }
  return { view, percent };
})();
