// Input fields for a reading, from what the team's file says of its parts: type, shape, range, label, unit.
"use strict";
const fields = (() => {
  const FEW = 6; // values that become buttons
  const LARGEST = { float16: 65504, float32: 3e38 };
  const el = views.html;
  const limit = (limits, agent, place) => {
    const own = Array.isArray(limits) ? limits[agent] : limits;
    return Array.isArray(own) ? own.flat(Infinity)[place] : own;
  };

  class Part {
    constructor(team, agent, number) {
      const part = team.parts[number], shown = (team.display.readings || [])[number] || [part.name || "reading", "", []];
      const at = (name) => limit(part[name], agent, 0);
      Object.assign(this, { part, number, label: shown[0] || part.name || "reading", unit: shown[1], values: shown[2] });
      Object.assign(this, { low: at("low"), high: at("high"), whole: at("whole"), shape: part.shape, fixed: new Map() });
      this.count = part.shape.reduce((a, b) => a * b, 1);
      this.few = this.whole && this.high - this.low <= FEW && this.low > -1e6;
      this.inputs = [];
    }

    get title() { return this.unit ? `${this.label}, ${this.unit}` : this.label; }

    get range() {
      const open = this.high >= (LARGEST[this.part.type] || Infinity), kind = this.whole ? "a whole number" : "a number";
      const below = this.low <= -(LARGEST[this.part.type] || Infinity);
      if (open && below) return kind;
      return open ? `${kind}, ${this.low} or more` : `${kind} from ${this.low} to ${this.high}`;
    }

    // Fields for people. A number is typed; one of few values is a button.
    draw() {
      const make = this.few && this.count === 1 ? () => this.buttons() : this.few ? (n) => this.toggle(n) : (n) => this.box(n);
      this.inputs = Array.from({ length: this.count }, (_, n) => make(n));
      const columns = this.shape.length > 1 ? this.shape[this.shape.length - 1] : 0;
      const kind = columns ? "grid" : this.count > 1 ? "several" : "one";
      const holder = el("div", { class: `inputs ${kind}` }, ...this.inputs.map((input) => input.node));
      if (columns) holder.style.setProperty("--columns", columns);
      const hint = !this.few ? el("span", { class: "hint" }, this.range) : this.count > 1 ? el("span", { class: "hint" }, "tap to change") : null;
      return el("fieldset", { class: "part" }, el("legend", {}, this.title, hint), holder);
    }

    name(n) { // of one field, for those who cannot see it
      if (this.count === 1) return this.title;
      const columns = this.shape[this.shape.length - 1];
      const place = this.shape.length > 1 ? `row ${Math.floor(n / columns) + 1}, column ${(n % columns) + 1}` : `${n + 1}`;
      return `${this.title}, ${place}`;
    }

    box(n) {
      const input = el("input", { type: "text", inputmode: this.low < 0 ? "text" : "decimal", autocomplete: "off", enterkeyhint: n + 1 < this.count ? "next" : "done", "aria-label": this.name(n) });
      const read = () => {
        const text = input.value.trim().replace(",", "."), value = Number(text);
        const fits = text && Number.isFinite(value) && value >= this.low && value <= this.high && (!this.whole || Number.isInteger(value));
        input.setAttribute("aria-invalid", String(!fits));
        if (!fits) throw Object.assign(new Error(text ? `${text} is not ${this.range}` : `${this.name(n)}: ${this.range} is missing`), { input });
        return value;
      };
      return { node: input, read, write: (value) => { input.value = value; } };
    }

    option(value) { return this.values[value - this.low] || String(value); }

    buttons() {
      let chosen = null;
      const all = [];
      const choose = (value) => { chosen = value; all.forEach((b, k) => b.setAttribute("aria-pressed", String(k + this.low === value))); };
      for (let value = this.low; value <= this.high; value++) {
        all.push(el("button", { type: "button", class: "choice", "aria-pressed": "false", onclick: () => choose(value) }, this.option(value)));
      }
      const read = () => {
        if (chosen === null) throw Object.assign(new Error(`choose ${this.label}`), { input: all[0] });
        return chosen;
      };
      return { node: el("div", { class: "segments", role: "group", "aria-label": this.title }, ...all), read, write: choose };
    }

    toggle(n) { // a cell that goes through its values
      let value = Math.max(this.low, 0);
      const node = el("button", { type: "button", class: "cell", onclick: () => write(value >= this.high ? this.low : value + 1) });
      const write = (to) => {
        value = to;
        node.textContent = String(value);
        node.setAttribute("aria-pressed", String(value !== Math.max(this.low, 0)));
        node.setAttribute("aria-label", `${this.name(n)}: ${this.option(value)}`);
      };
      write(value);
      return { node, read: () => value, write };
    }

    fix(n, value) { // a field whose value is known
      this.fixed.set(n, value);
      const input = this.inputs[n];
      input.write(value);
      input.node.disabled = true;
    }

    read() {
      const values = this.inputs.map((input, n) => (this.fixed.has(n) ? this.fixed.get(n) : input.read()));
      return folded(values, this.shape);
    }

    write(reading) { [reading].flat(Infinity).forEach((value, n) => this.inputs[n].write(value)); }
  }

  function folded(values, shape) {
    if (!shape.length) return values[0];
    const size = values.length / shape[0];
    return Array.from({ length: shape[0] }, (_, n) => folded(values.slice(n * size, (n + 1) * size), shape.slice(1)));
  }

  // A reading in the layout of the problem, from the values of its parts.
  function laid(layout, values) {
    if (layout === null) return null;
    if (typeof layout === "number") return values[layout];
    if (Array.isArray(layout)) return layout.map((item) => laid(item, values));
    return Object.fromEntries(Object.entries(layout).map(([name, item]) => [name, laid(item, values)]));
  }

  return { Part, folded, laid };
})();
