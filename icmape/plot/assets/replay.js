// The replay: choose an episode, step through its rounds, look at it as the team or as one of its agents.

const PACE = 1200, LONGEST = 15000, WIDEST = 900; // milliseconds of a round and of an episode while it plays; pixels
const START = 2000, END = 1500, LEAST = 5000; // milliseconds before the first round, from the stop to the truth, and of an episode
const MOST_BUTTONS = 6;

class Player {
  constructor(root) {
    this.root = root;
    this.scenes = JSON.parse(root.querySelector("script").textContent);
    this.agent = null; // the team
    this.truth = false;
    this.timer = null;
    this.controls();
    this.chooseScene(0);
    this.width = root.clientWidth;
    new ResizeObserver(() => {
      if (root.clientWidth !== this.width) this.show();
      this.width = root.clientWidth;
    }).observe(root);
    if (root.dataset.autoplay !== undefined) this.begin();
  }

  get last() {
    return this.scene.rounds.length - 1;
  }

  begin() {
    // It plays once by itself when it is seen, or shows the end where motion is not wanted.
    if (still.matches) {
      this.round = this.last;
      return this.show();
    }
    const seen = new IntersectionObserver(([one]) => {
      if (!one.isIntersecting) return;
      seen.disconnect();
      if (!this.touched) this.toggle(true);
    }, { threshold: 0.5 });
    seen.observe(this.stage);
    const touch = () => { this.touched = true; };
    ["pointerdown", "keydown"].forEach((kind) => this.root.addEventListener(kind, touch, { once: true, capture: true }));
  }

  controls() {
    const button = (words, name, label, act) => {
      const made = html("button", { type: "button", "data-do": name, "aria-label": label }, words);
      made.addEventListener("click", act);
      return made;
    };
    this.play = button("▶ Play", "play", null, () => this.toggle());
    this.back = button("‹", "back", "A round back", () => this.go(this.round - 1));
    this.next = button("›", "next", "A round on", () => this.go(this.round + 1));
    this.reveal = button("Show the truth", "truth", null, () => { this.truth = !this.truth; this.show(); });
    this.slider = html("input", { type: "range", min: 0, step: 1, "aria-label": "Round" });
    this.slider.addEventListener("input", () => this.go(+this.slider.value));
    this.views = html("span", { class: "replay-views", role: "group", "aria-label": "Whose view" });
    this.stage = html("div", { class: "stage" });
    this.side = html("div", { class: "side" });
    this.words = html("p", { class: "replay-words", "aria-live": "polite" });
    this.root.append(this.choice(), html("div", { class: "replay-body" }, this.stage, this.side,
      html("div", { class: "replay-bar" }, this.play, this.back, this.next, this.slider, this.views, this.reveal)), this.words);
  }

  choice() {
    const top = html("div", { class: "replay-top", role: "group", "aria-label": "Episode" });
    this.tabs = [];
    if (this.scenes.length === 1) top.append(html("h3", {}, this.scenes[0].title));
    else if (this.scenes.length <= MOST_BUTTONS) {
      this.tabs = this.scenes.map((scene, index) => {
        const made = html("button", { type: "button", "data-episode": index + 1 }, scene.title);
        made.addEventListener("click", () => this.chooseScene(index));
        return made;
      });
      top.append(...this.tabs);
    } else {
      const select = html("select", {}, this.scenes.map((scene, index) => html("option", { value: index }, scene.title)));
      select.addEventListener("change", () => this.chooseScene(+select.value));
      top.append(html("label", {}, "Episode ", select));
    }
    return top;
  }

  chooseScene(index) {
    this.scene = this.scenes[index];
    this.tabs.forEach((tab, at) => tab.setAttribute("aria-pressed", at === index));
    const { views, agent } = this.scene;
    this.views.replaceChildren(...[null, ...range(views.length)].map((one) => {
      const made = html("button", { type: "button", "data-agent": one === null ? "team" : one + 1 }, one === null ? "Team" : badge(one));
      made.setAttribute("aria-label", one === null ? "The whole team" : `Only what ${agent} ${one + 1} knows`);
      made.addEventListener("click", () => this.choose(one));
      return made;
    }));
    this.slider.max = this.last;
    this.agent = this.agent !== null && this.agent < views.length ? this.agent : null;
    this.go(0);
  }

  go(round, playing = false) {
    if (!playing) this.pause();
    this.round = Math.min(this.last, Math.max(0, round));
    this.show();
  }

  choose(agent) {
    if (agent !== null && agent >= this.scene.views.length) return;
    this.agent = agent;
    this.show();
  }

  toggle() {
    if (this.timer) return this.halt();
    if (this.round === this.last) this.go(0);
    this.words.setAttribute("aria-live", "off");
    this.play.textContent = "❚❚ Pause";
    this.wait();
  }

  wait() {
    // The next round comes after a while, and the truth a while after the last one.
    const pace = Math.max(250, Math.min(PACE, LONGEST / (this.last + 1)));
    const end = Math.max(END, LEAST - START - Math.max(0, this.last - 1) * pace);
    this.timer = setTimeout(() => {
      if (this.round === this.last) return this.halt();
      this.go(this.round + 1, true);
      this.wait();
    }, this.round === this.last ? end : this.round === 0 ? START : pace);
  }

  halt() {
    this.pause();
    this.show();
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = null;
    this.words.setAttribute("aria-live", "polite");
    this.play.textContent = "▶ Play";
  }

  key(name, focused) {
    // Where nothing has the focus, keys that scroll the page stay the page's.
    if (name === "ArrowLeft") this.go(this.round - 1);
    else if (name === "ArrowRight") this.go(this.round + 1);
    else if (/^[0-9]$/.test(name)) this.choose(name === "0" ? null : +name - 1);
    else if (!focused) return false;
    else if (name === "Home") this.go(0);
    else if (name === "End") this.go(this.last);
    else if (name === "ArrowUp" || name === "ArrowDown") this.turn(name === "ArrowUp" ? -1 : 1);
    else return false;
    return true;
  }

  turn(step) {
    const count = this.scene.views.length + 1, at = this.agent === null ? 0 : this.agent + 1;
    const to = (at + step + count) % count;
    this.choose(to === 0 ? null : to - 1);
  }

  // -- what is seen

  show() {
    const { round, agent } = this, ended = round === this.last;
    const truth = this.truth || (agent === null && ended && !this.timer);
    this.slider.value = round;
    this.slider.setAttribute("aria-valuetext", after(round, this.last));
    this.back.disabled = round === 0;
    this.next.disabled = ended;
    this.reveal.setAttribute("aria-pressed", this.truth);
    for (const button of this.views.children) {
      button.setAttribute("aria-pressed", button.dataset.agent === (agent === null ? "team" : String(agent + 1)));
    }
    const room = Math.min(WIDEST, this.stage.clientWidth || 320);
    this.stage.replaceChildren(...this.pictures(truth, room));
    this.side.replaceChildren(...(agent === null ? this.team(ended, truth) : this.own(ended)));
    this.words.textContent = this.told(ended, truth);
  }

  pictures(truth, room) {
    const { scene, round, agent } = this, own = agent !== null;
    if (scene.ground) return [mapPicture(scene, round, agent, truth, room), mapLegend(scene, agent, truth)];
    const columns = hasColumns(scene) ? [columnsPicture(scene, round, agent, truth, room), columnsLegend(scene, agent, truth)] : [];
    const bars = own || (columns.length && scene.slots) ? [] : [barsPicture(scene, round, truth)];
    const past = own ? ownRounds(scene, round, agent, room) : teamRounds(scene, round, room);
    return [...columns, ...bars, html("h4", {}, own ? "round by round" : `all rounds so far`), past];
  }

  team(ended, truth) {
    const { scene, round } = this, { answer, confidence, right } = scene.rounds[round];
    const verdict = truth ? html("b", { class: right ? "right" : "wrong" }, right ? " ✓ right" : " ✗ wrong") : "";
    const bar = html("div", { class: "sure", role: "img", "aria-label": `${percent(confidence)}, target ${percent(scene.target)}` },
      html("div", { style: `width:${100 * confidence}%` }), html("i", { style: `left:${100 * scene.target}%` }));
    return [
      html("p", { class: "soft" }, `${after(round, this.last)} · chance that the answer is right`),
      html("div", { class: "chance" }, html("p", { class: "large" }, confidence > 0.9995 ? "> 99.9 %" : `${(100 * confidence).toFixed(1)} %`),
        confidencePicture(scene, round, Math.max(150, (this.side.clientWidth || 300) - 176), truth)), bar,
      html("p", { class: "soft" }, `target ${percent(scene.target)} on average over worlds`, truth && wrongBefore(scene, round) ? [" · ", html("b", { class: "wrong" }, "✗"), " the answer would be wrong"] : ""),
      html("p", { class: "answer" }, ended ? "Answer: " : "Answer so far: ", html("b", {}, answer), verdict),
      html("ul", { class: "agents" }, scene.views.map((view, one) => this.line(badge(one), view[round], ended))),
      ended ? html("p", { class: "reason" }, `${capital(scene.reason)}.${truth ? ` The truth: ${scene.truth}.` : ""}`) : "",
      truth && ended && scene.credible ? html("p", { class: "soft" }, scene.credible) : "",
    ];
  }

  line(head, row, ended) {
    const { values } = this.scene;
    const seen = values && row.value !== null ? html("b", {}, values[row.value]) : row.seen ? html("span", {}, where(row), html("b", {}, row.seen)) : html("span", { class: "soft" }, "nothing seen yet");
    const next = !row.stops ? html("span", { class: "soft" }, `${ended ? "would go on" : "next"}: ${row.next}`)
      : html("span", {}, html("b", { class: "stop" }, "STOP"), row.forced ? html("span", { class: "soft" }, " at the horizon or by rule") : " for everyone");
    return html("li", {}, head, html("span", { class: "lines" }, seen, next));
  }

  own(ended) {
    const { scene, round, agent } = this, rows = scene.views[agent].slice(0, round + 1);
    return [
      html("p", { class: "soft" }, `${after(round, this.last)} · all that`),
      html("p", { class: "large small" }, badge(agent), ` ${scene.agent} ${agent + 1} knows`),
      html("ul", { class: "agents past" }, rows.map((row, number) =>
        this.line(html("span", { class: "number" }, number || ""), row, ended && number === round)).reverse()),
      html("p", { class: "soft" }, `It knows neither the others' readings nor the team's answer and its chance.`),
    ];
  }

  told(ended, truth) {
    const { scene, round, agent } = this;
    const said = agent === null ? scene.rounds[round].words : `Own view. ${scene.views[agent][round].words}`;
    if (agent === null && ended && truth) return `${said} ${scene.ending}`;
    return truth ? `${said} The truth: ${scene.truth}.` : said;
  }
}

const where = (row) => (row.place ? `${row.place}: ` : "saw ");

const wrongBefore = (scene, round) => scene.rounds.slice(0, round + 1).some((one) => !one.right);

function confidencePicture(scene, round, width, truth) {
  const left = 34, right = 8, top = 12, high = 62, count = scene.rounds.length;
  const step = (width - left - right) / count, x = (number) => left + number * step, y = (value) => top + (1 - value) * high;
  const drawn = svg("svg", { width, height: top + high + 22, viewBox: `0 0 ${width} ${top + high + 22}`, role: "img",
    "aria-label": "Chance that the answer is right, by rounds so far, with the target" });
  [0, 0.5, 1].forEach((value) => drawn.append(
    svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), stroke: "var(--line)" }),
    svg("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end", class: "soft" }, 100 * value)));
  const every = Math.ceil(count / Math.max(1, Math.floor((width - left) / 24)));
  range(count).filter((number) => number % every === 0).forEach((number) =>
    drawn.append(svg("text", { x: x(number + 0.5), y: top + high + 16, "text-anchor": "middle", class: "soft" }, number || (step > 34 ? "start" : ""))));
  drawn.append(svg("line", { x1: left, x2: width - right, y1: y(scene.target), y2: y(scene.target), stroke: "var(--ink)", "stroke-dasharray": "5 4" }),
    svg("rect", { x: x(round), y: top, width: step, height: high, fill: "var(--ink)", "fill-opacity": 0.07 }));
  const known = scene.rounds.slice(0, round + 1);
  drawn.append(svg("path", { d: known.map((one, number) => `${number ? "V" : `M${x(0)} `}${y(one.confidence)}H${x(number + 1)}`).join(""),
    fill: "none", stroke: "var(--accent)", "stroke-width": 2.5, "stroke-linejoin": "round" }));
  if (truth) known.forEach((one, number) => { // an answer that would be wrong
    if (!one.right) drawn.append(svg("text", { x: x(number + 0.5), y: y(one.confidence) - 3, "text-anchor": "middle", class: "wrong" }, "✗"));
  });
  return drawn;
}

const players = [...document.querySelectorAll(".replay")].map((root) => new Player(root));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  glows = null;
  players.forEach((player) => player.show());
});

function inSight(player) {
  const { top, bottom } = player.root.getBoundingClientRect();
  return Math.min(bottom, innerHeight) - Math.max(top, 0) > Math.min(200, innerHeight / 3);
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const active = document.activeElement, idle = !active || active === document.body;
  const player = players.find((one) => one.root.contains(active)) || (idle && players.find(inSight));
  if (!player || active?.tagName === "SELECT") return;
  const slides = active?.type === "range" && ["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key); // it moves itself
  if (event.key === " " && active === player.root) player.toggle();
  else if (slides || !player.key(event.key, !idle)) return;
  player.touched = true;
  event.preventDefault();
});
