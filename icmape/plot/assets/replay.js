// The replay: choose an episode, step through its rounds, look at it as the team or as one of its agents.

const PACE = 1200; // milliseconds of a round while it plays

class Player {
  constructor(root) {
    this.root = root;
    this.scenes = JSON.parse(root.querySelector("script").textContent);
    this.scene = this.scenes[0];
    this.round = 0;
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
  }

  get last() {
    return this.scene.rounds.length - 1;
  }

  controls() {
    const button = (words, name, act) => {
      const made = html("button", { type: "button", "data-do": name }, words);
      made.addEventListener("click", act);
      return made;
    };
    this.back = button("‹ Back", "back", () => this.go(this.round - 1));
    this.next = button("Next ›", "next", () => this.go(this.round + 1));
    this.play = button("Play", "play", () => this.toggle());
    this.slider = html("input", { type: "range", min: 0, step: 1, "aria-label": "Round" });
    this.slider.addEventListener("input", () => this.go(+this.slider.value));
    this.count = html("span", { class: "quiet" });
    this.choice = html("select", {}, this.scenes.map((scene, index) => html("option", { value: index }, scene.title)));
    this.choice.addEventListener("change", () => this.chooseScene(+this.choice.value));
    this.views = html("span", { class: "replay-row", role: "group", "aria-label": "Whose view", style: "margin:0" });
    this.box = html("input", { type: "checkbox", "data-do": "truth" });
    this.box.addEventListener("change", () => { this.truth = this.box.checked; this.show(); });
    this.now = html("p", { class: "replay-now" });
    this.body = html("div", { class: "replay-body" });
    this.words = html("p", { class: "replay-words", "aria-live": "polite" });
    const episode = this.scenes.length > 1 ? html("label", {}, "Episode ", this.choice) : html("h3", {}, this.scene.title);
    this.root.append(
      html("div", { class: "replay-row" }, episode),
      html("div", { class: "replay-row" }, this.back, this.play, this.next, this.slider, this.count),
      html("div", { class: "replay-row" }, this.views, html("label", { class: "end" }, this.box, "show the truth")),
      this.now, this.body, this.words);
  }

  chooseScene(index) {
    this.scene = this.scenes[index];
    const count = this.scene.views.length;
    this.views.replaceChildren(...[null, ...range(count)].map((agent) => {
      const words = agent === null ? ["Team"] : [html("span", { class: "agent", style: `background:${colour(agent)};margin:0` }, agent + 1)];
      const made = html("button", { type: "button", "data-agent": agent === null ? "team" : agent + 1 }, words);
      made.setAttribute("aria-label", agent === null ? "The whole team" : `Only what agent ${agent + 1} knows`);
      made.addEventListener("click", () => this.choose(agent));
      return made;
    }));
    this.slider.max = this.last;
    this.agent = this.agent !== null && this.agent < count ? this.agent : null;
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
    if (this.timer) return this.pause();
    if (this.round === this.last) this.go(0);
    this.timer = setInterval(() => {
      this.go(this.round + 1, true);
      if (this.round === this.last) this.pause();
    }, PACE);
    this.play.textContent = "Pause";
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "Play";
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
    const { scene, round, agent } = this, ended = round === this.last;
    const truth = this.truth || (agent === null && ended);
    this.slider.value = round;
    this.slider.setAttribute("aria-valuetext", `round ${round} of ${this.last}`);
    this.count.textContent = `${round} / ${this.last}`;
    this.back.disabled = round === 0;
    this.next.disabled = ended;
    for (const button of this.views.children) {
      button.setAttribute("aria-pressed", button.dataset.agent === (agent === null ? "team" : String(agent + 1)));
    }
    this.now.replaceChildren(...this.headline(ended, truth));
    this.body.replaceChildren(...(agent === null ? this.team(truth) : this.own(truth)));
    this.words.textContent = this.told(ended, truth);
  }

  headline(ended, truth) {
    const { scene, round, agent } = this;
    if (agent !== null) return [`Round ${round}: all that agent ${agent + 1} knows`, ended ? html("span", { class: "quiet" }, " (the last round)") : ""];
    const { answer, sure, right } = scene.rounds[round];
    const verdict = truth ? html("span", { class: right ? "right" : "wrong" }, right ? " ✓ right" : " ✗ wrong") : "";
    return [`Round ${round}: answer ${answer}, p = ${sure}`, verdict, ended ? html("span", { class: "quiet" }, ` (${scene.reason})`) : ""];
  }

  told(ended, truth) {
    const { scene, round, agent } = this;
    const said = agent === null ? scene.rounds[round].words : `Own view. ${scene.views[agent][round].words}`;
    if (agent === null && ended) return `${said} ${scene.ending}`;
    return truth ? `${said} The truth: ${scene.truth}.` : said;
  }

  team(truth) {
    const { scene, round } = this, stage = html("div", { class: "stage" }), side = html("div", {});
    this.body.replaceChildren(stage, side); // so that widths are known
    const known = scene.ground ? [mapPicture(scene, round, null, truth), mapLegend(scene, null, truth)] : [barsPicture(scene, round, truth)];
    stage.append(html("h4", {}, `${scene.posterior} posterior`), ...known);
    side.append(this.everyone(), html("h4", {}, `confidence by round${truth ? "; hollow: the answer would be wrong" : ""}`),
      confidencePicture(scene, round, side.clientWidth || 320, truth));
    if (scene.ground) return [stage, side];
    const below = html("div", { class: "all" }, html("h4", {}, "what everyone chose, and what it returned"));
    below.append(teamRounds(scene, round, this.body.clientWidth || 320));
    return [stage, side, below];
  }

  everyone() {
    const { scene, round } = this, places = scene.views.some((view) => view.some((row) => row.place));
    const heading = html("tr", {}, ["agent", ...(places ? ["where"] : []), "saw", "choice"].map((word) => html("th", { scope: "col" }, word)));
    return html("table", {}, html("thead", {}, heading), html("tbody", {}, scene.views.map((view, agent) => {
      const row = view[round];
      const name = html("th", { scope: "row" }, html("span", { class: "agent", style: `background:${colour(agent)}` }, agent + 1));
      return html("tr", {}, name, places ? html("td", {}, row.place || "–") : "", html("td", {}, row.seen || "–"), html("td", {}, this.chosen(row, round)));
    })));
  }

  chosen(row, round) {
    if (row.stops) return row.does === "chooses STOP" ? html("span", { class: "stop" }, "STOP") : html("span", {}, "made to stop");
    return round === this.last ? html("span", { class: "quiet" }, `would go on: ${row.choice}`) : row.choice;
  }

  own(truth) {
    const { scene, round, agent } = this, stage = html("div", { class: "stage" }), side = html("div", {});
    this.body.replaceChildren(stage, side);
    const words = scene.ground ? "own readings (pale: never read)" : "own choices by round, and what they returned";
    stage.append(html("h4", {}, words));
    if (scene.ground) stage.append(mapPicture(scene, round, agent, truth), mapLegend(scene, agent, truth));
    else stage.append(ownRounds(scene, round, agent, stage.clientWidth || 320));
    const places = scene.views[agent].some((row) => row.place);
    const heading = html("tr", {}, ["round", ...(places ? ["where"] : []), "saw", "choice"].map((word) => html("th", { scope: "col" }, word)));
    const rows = scene.views[agent].slice(0, round + 1).map((row, number) => html("tr", { class: number === round ? "now" : null },
      html("th", { scope: "row" }, number), places ? html("td", {}, row.place || "–") : "", html("td", {}, row.seen || "–"),
      html("td", {}, this.chosen(row, number))));
    side.append(html("table", {}, html("thead", {}, heading), html("tbody", {}, rows.reverse())),
      html("p", { class: "replay-words" }, "It knows neither the others' readings nor the posterior or its answer."));
    return [stage, side];
  }
}

const players = [...document.querySelectorAll(".replay")].map((root) => new Player(root));

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
  event.preventDefault();
});
