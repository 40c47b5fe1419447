// What all pictures of a scene share: elements, colours, signs.

function build(make, name, attributes, children) {
  const made = make(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}
const html = (name, attributes, ...children) => build((n) => document.createElement(n), name, attributes, children);
const svg = (name, attributes, ...children) =>
  build((n) => document.createElementNS("http://www.w3.org/2000/svg", n), name, attributes, children);

const range = (count, first = 0) => Array.from({ length: Math.max(0, count - first) }, (_, index) => index + first);
const number3 = (value) => (value >= 0.01 || value === 0 ? String(+value.toPrecision(2)) : value.toFixed(Math.min(9, Math.ceil(-Math.log10(value)))));
const percent = (value) => (value > 0.99 && value < 1 ? "> 99 %" : value < 0.01 && value > 0 ? "< 1 %" : `${Math.round(100 * value)} %`);
const still = matchMedia("(prefers-reduced-motion: reduce)");

// -- colours, all from icmape_agent/look.py

const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const AGENTS = +variable("agents");
const colour = (index) => `var(--agent-${(index % AGENTS) + 1})`;
let glows = null; // read once for each theme

function glow(fraction) {
  glows = glows || [0, 1, 2].map((step) => variable(`glow-${step}`));
  const at = Math.min(1, Math.max(0, fraction)) * 2, low = Math.min(Math.floor(at), 1);
  const mix = (shift) => {
    const [a, b] = [glows[low], glows[low + 1]].map((stop) => (parseInt(stop.slice(1), 16) >> shift) & 255);
    return Math.round(a + (b - a) * (at - low));
  };
  return `rgb(${mix(16)},${mix(8)},${mix(0)})`;
}

// -- signs: each means one thing in all pictures

const cased = (make, edge, width) => // a line with a rim of the page's colour, so that it is seen on everything
  svg("g", { fill: "none" }, make({ stroke: "var(--page)", "stroke-width": width + 3, "stroke-opacity": 0.85 }), make({ stroke: edge, "stroke-width": width }));
const ring = (x, y, r, edge = "var(--truth)", dash = null) =>
  cased((look) => svg("circle", { cx: x, cy: y, r, ...look, "stroke-dasharray": dash }), edge, 3);
const square = (x, y, wide, high = wide) =>
  cased((look) => svg("rect", { x: x - wide / 2, y: y - high / 2, width: wide, height: high, rx: 3, ...look }), "var(--ink)", 2.5);
const starPoints = (x, y, r) => range(10).map((index) => {
  const angle = Math.PI * (index / 5 - 0.5), reach = index % 2 ? 0.45 * r : r;
  return `${(x + reach * Math.cos(angle)).toFixed(1)},${(y + reach * Math.sin(angle)).toFixed(1)}`;
}).join(" ");
const star = (x, y, r, fill) => svg("polygon", { points: starPoints(x, y, r), fill, stroke: "var(--on-agent)", "stroke-width": 1.2 });
const sample = (drawn, width = 22) => svg("svg", { width, height: 20, viewBox: `0 0 ${width} 20`, "aria-hidden": "true" }, drawn);
const badge = (agent) => html("span", { class: "agent", style: `background:${colour(agent)}` }, agent + 1);

function flag(x, y, scale = 1, left = 0) {
  return svg("g", { transform: `translate(${x - left * scale} ${y}) scale(${scale})` },
    svg("path", { d: `M${left} 0V-20`, stroke: "var(--ink)", "stroke-width": 2 }),
    svg("path", { d: "M0 -21H44L39 -13L44 -5H0Z", fill: "var(--stop)", stroke: "var(--page)" }),
    svg("text", { x: 20, y: -8.5, "text-anchor": "middle", class: "stop-word" }, "STOP"));
}

function ramp(words, low, high) {
  return html("span", {}, `${words}: ${low}`,
    html("span", { class: "ramp", style: `background:linear-gradient(to right,${[0, 0.5, 1].map(glow).join(",")})` }), high);
}
const after = (round, last) => (round ? `after round ${round}${last ? ` of ${last}` : ""}` : "before round 1"); // rounds of readings; the stop is none
const entry = (drawn, words) => html("span", {}, drawn, ` ${words}`);
const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);
