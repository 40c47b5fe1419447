// Runs teams that `icmape export TEAM --to js` wrote: agents that act alone, and the answer from the data of all.
// No dependencies; a <script> of any page (also from file://) or require() in Node.
//
//   const team = icmape.load(exported);          // the object in the exported JSON file
//   const agent = team.agent(0);                 // agents count from 0; team.agent(0, first) where something is seen before
//   const action = agent.act();                  // icmape.STOP ends the episode for everyone
//   agent.see(action, reading);                  // or agent.missed(action): the reading never came
//   const answer = team.posterior(actions, observations);  // null: a reading that never came, an agent that did nothing
"use strict";
const icmape = (() => {
  const STOP = -1;
  const ARRAYS = {
    bool: Uint8Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, uint8: Uint8Array, uint16: Uint16Array,
    uint32: Uint32Array, float16: Float32Array, float32: Float32Array,
  };
  const LIMITS = {
    int8: [-128, 127], int16: [-32768, 32767], int32: [-2147483648, 2147483647], uint8: [0, 255], uint16: [0, 65535],
    uint32: [0, 4294967295],
  };
  const product = (sizes) => sizes.reduce((a, b) => a * b, 1);
  const strides = (shape) => shape.map((_, axis) => product(shape.slice(axis + 1)));
  const need = (condition, what) => { if (!condition) throw new Error(what); };

  // -- numbers

  function even(x) {
    const near = Math.round(x);
    return Math.abs(x % 1) === 0.5 && near % 2 !== 0 ? near - 1 : near;
  }
  function half(x) { // rounded to 16 bits
    const size = Math.abs(x);
    if (!(size < 65520)) return size === size ? Math.sign(x) * Infinity : NaN;
    if (size < 2 ** -14) return even(x * 2 ** 24) / 2 ** 24;
    let power = Math.floor(Math.log2(size));
    if (2 ** power > size) power -= 1;
    if (2 ** (power + 1) <= size) power += 1;
    return even(x * 2 ** (10 - power)) / 2 ** (10 - power);
  }
  function halfBits(bits) {
    const sign = bits & 0x8000 ? -1 : 1, power = (bits >> 10) & 31, rest = bits & 1023;
    if (power === 31) return rest ? NaN : sign * Infinity;
    return sign * (power ? 2 ** (power - 15) * (1 + rest / 1024) : 2 ** -14 * (rest / 1024));
  }
  function erf(x) {
    if (Math.abs(x) > 3) return Math.sign(x) * (1 - erfc(Math.abs(x)));
    let term = x, sum = x;
    for (let n = 1; n < 80; n++) { term *= (2 * x * x) / (2 * n + 1); sum += term; }
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
  }
  function erfc(x) {
    if (x < 2) return 1 - erf(x);
    let tail = 0;
    for (let n = 60; n > 0; n--) tail = n / 2 / (x + tail);
    return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + tail);
  }
  const saturate = (type) => {
    const [low, high] = LIMITS[type];
    return (x) => (x === x ? Math.min(Math.max(Math.trunc(x), low), high) : 0);
  };
  const UNARY = {
    neg: (x) => -x, abs: Math.abs, sign: Math.sign, floor: Math.floor, ceil: Math.ceil, round: even, exp: Math.exp,
    exp2: (x) => 2 ** x, expm1: Math.expm1, log: Math.log, log1p: Math.log1p, sqrt: Math.sqrt, cbrt: Math.cbrt,
    sin: Math.sin, cos: Math.cos, tan: Math.tan, asin: Math.asin, acos: Math.acos, atan: Math.atan, sinh: Math.sinh,
    cosh: Math.cosh, tanh: Math.tanh, asinh: Math.asinh, acosh: Math.acosh, atanh: Math.atanh, erf, erfc,
    logistic: (x) => 1 / (1 + Math.exp(-x)), is_finite: (x) => (Number.isFinite(x) ? 1 : 0),
  };
  const BINARY = {
    add: (x, y) => x + y, sub: (x, y) => x - y, mul: (x, y) => x * y, div: (x, y) => x / y, rem: (x, y) => x % y,
    pow: (x, y) => x ** y, atan2: Math.atan2, max: Math.max, min: Math.min, eq: (x, y) => +(x === y),
    ne: (x, y) => +(x !== y), lt: (x, y) => +(x < y), le: (x, y) => +(x <= y), gt: (x, y) => +(x > y),
    ge: (x, y) => +(x >= y), and: (x, y) => x & y, or: (x, y) => x | y, xor: (x, y) => x ^ y,
    shift_left: (x, y) => x << y, shift_right: (x, y) => x >> y, shift_right_logical: (x, y) => x >>> y,
  };

  // -- operations: each returns the function of the operands' data that fills the result

  // The position in an operand for every element of the result, from strides (0 where an axis is repeated).
  function positions(shape, steps, start) {
    const map = new Int32Array(product(shape)), at = shape.map(() => 0);
    let here = start;
    for (let i = 0; i < map.length; i++) {
      map[i] = here;
      for (let axis = shape.length - 1; axis >= 0; axis--) {
        here += steps[axis];
        if (++at[axis] < shape[axis]) break;
        here -= steps[axis] * shape[axis];
        at[axis] = 0;
      }
    }
    return map;
  }
  function repeated(operand, shape) { // strides of an operand that is broadcast
    const steps = strides(operand), missing = shape.length - operand.length;
    return shape.map((_, axis) => (axis < missing || operand[axis - missing] === 1 ? 0 : steps[axis - missing]));
  }
  const moved = (map) => (out, x) => { for (let i = 0; i < out.length; i++) out[i] = x[map[i]]; };
  function split(shape, axis) {
    return [product(shape.slice(0, axis)), shape[axis], product(shape.slice(axis + 1))];
  }
  function elementwise(call, operands, shape) {
    const size = product(shape);
    if (operands.every((operand) => product(operand) === size)) {
      if (operands.length === 1) return (out, x) => { for (let i = 0; i < size; i++) out[i] = call(x[i]); };
      if (operands.length === 2) return (out, x, y) => { for (let i = 0; i < size; i++) out[i] = call(x[i], y[i]); };
    }
    const maps = operands.map((operand) => positions(shape, repeated(operand, shape), 0));
    if (operands.length === 2) {
      const [a, b] = maps;
      return (out, x, y) => { for (let i = 0; i < size; i++) out[i] = call(x[a[i]], y[b[i]]); };
    }
    const [a, b, c] = maps;
    return (out, x, y, z) => { for (let i = 0; i < size; i++) out[i] = call(x[a[i]], y[b[i]], z[c[i]]); };
  }
  function reduction(start, call) {
    return ({ axes }, [operand], shape) => {
      const kept = operand.map((_, axis) => !axes.includes(axis)), steps = strides(shape);
      let next = 0;
      const map = positions(operand, kept.map((keep) => (keep ? steps[next++] : 0)), 0);
      const total = new Float64Array(product(shape));
      return (out, x) => {
        total.fill(start);
        for (let i = 0; i < map.length; i++) total[map[i]] = call(total[map[i]], x[i]);
        out.set(total);
      };
    };
  }
  function best(better) {
    return ({ axis }, [operand]) => {
      const [outer, count, inner] = split(operand, axis);
      return (out, x) => {
        for (let o = 0; o < outer; o++) for (let i = 0; i < inner; i++) {
          let found = 0, value = x[o * count * inner + i];
          for (let n = 1; n < count && value === value; n++) {
            const other = x[(o * count + n) * inner + i];
            if (better(other, value) || other !== other) { found = n; value = other; }
          }
          out[o * inner + i] = found;
        }
      };
    };
  }
  function running(call) {
    return ({ axis, reverse }, [operand]) => {
      const [outer, count, inner] = split(operand, axis);
      return (out, x) => {
        for (let o = 0; o < outer; o++) for (let i = 0; i < inner; i++) {
          for (let n = 0, total; n < count; n++) {
            const at = (o * count + (reverse ? count - 1 - n : n)) * inner + i;
            total = n ? call(total, x[at]) : x[at];
            out[at] = total;
          }
        }
      };
    };
  }
  function sorted(withPlaces) {
    return ({ axis, descending }, [operand]) => {
      const [outer, count, inner] = split(operand, axis);
      return (out, x) => {
        for (let o = 0; o < outer; o++) for (let i = 0; i < inner; i++) {
          const at = (n) => (o * count + n) * inner + i;
          const rank = (v) => (v !== v ? Infinity : v);
          const order = Array.from({ length: count }, (_, n) => n).sort((a, b) => {
            const [u, v] = [rank(x[at(a)]), rank(x[at(b)])];
            return u === v ? a - b : (u < v ? -1 : 1) * (descending ? -1 : 1);
          });
          order.forEach((n, place) => { out[at(place)] = withPlaces ? n : x[at(n)]; });
        }
      };
    };
  }
  const UPDATES = { set: (x, y) => y, add: (x, y) => x + y, mul: (x, y) => x * y, min: Math.min, max: Math.max };
  const OPERATIONS = {
    reshape: () => (out, x) => out.set(x),
    transpose: ({ axes }, [operand], shape) => {
      const steps = strides(operand);
      return moved(positions(shape, axes.map((axis) => steps[axis]), 0));
    },
    broadcast: (_, [operand], shape) => moved(positions(shape, repeated(operand, shape), 0)),
    slice: ({ start, step }, [operand], shape) => {
      const steps = strides(operand), first = start.reduce((sum, n, axis) => sum + n * steps[axis], 0);
      return moved(positions(shape, step.map((n, axis) => n * steps[axis]), first));
    },
    flip: ({ axes }, [operand], shape) => {
      const steps = strides(operand), last = axes.reduce((sum, axis) => sum + (shape[axis] - 1) * steps[axis], 0);
      return moved(positions(shape, steps.map((n, axis) => (axes.includes(axis) ? -n : n)), last));
    },
    pad: ({ before }, [operand], shape) => {
      const steps = strides(shape), first = before.reduce((sum, n, axis) => sum + n * steps[axis], 0);
      const map = positions(operand, steps, first);
      return (out, x, value) => { out.fill(value[0]); for (let i = 0; i < map.length; i++) out[map[i]] = x[i]; };
    },
    concatenate: ({ axis }, operands, shape) => {
      const parts = operands.map((operand) => product(operand.slice(axis))), row = product(shape.slice(axis));
      return (out, ...xs) => {
        let left = 0;
        xs.forEach((x, k) => {
          for (let o = 0; o * row < out.length; o++) out.set(x.subarray(o * parts[k], (o + 1) * parts[k]), o * row + left);
          left += parts[k];
        });
      };
    },
    matmul: (_, [a, b]) => {
      const count = a.length === 3 ? a[0] : 1, inner = a[a.length - 1];
      const rows = a.length > 1 ? a[a.length - 2] : 1, columns = b.length > 1 ? b[b.length - 1] : 1;
      const sums = new Float64Array(columns);
      return (out, x, y) => {
        for (let n = 0; n < count; n++) for (let i = 0; i < rows; i++) {
          sums.fill(0);
          for (let k = 0; k < inner; k++) {
            const factor = x[(n * rows + i) * inner + k], from = (n * inner + k) * columns;
            for (let j = 0; j < columns; j++) sums[j] += factor * y[from + j];
          }
          out.set(sums, (n * rows + i) * columns);
        }
      };
    },
    take: ({ axis }, [operand, index]) => {
      const [outer, count, inner] = split(operand, axis), places = product(index);
      return (out, x, at) => {
        for (let o = 0; o < outer; o++) for (let p = 0; p < places; p++) {
          const from = (o * count + Math.min(Math.max(at[p], 0), count - 1)) * inner, to = (o * places + p) * inner;
          for (let i = 0; i < inner; i++) out[to + i] = x[from + i];
        }
      };
    },
    put: ({ how }) => (out, x, at, updates) => {
      out.set(x);
      for (let i = 0; i < at.length; i++) {
        if (at[i] >= 0 && at[i] < out.length) out[at[i]] = UPDATES[how](out[at[i]], updates[i]);
      }
    },
    window: ({ axis, size }, [operand]) => {
      const [outer, count, inner] = split(operand, axis);
      return (out, x, start) => {
        const first = Math.min(Math.max(start[0], 0), count - size);
        for (let o = 0; o < outer; o++) {
          const from = (o * count + first) * inner;
          out.set(x.subarray(from, from + size * inner), o * size * inner);
        }
      };
    },
    sum: reduction(0, (a, b) => a + b), prod: reduction(1, (a, b) => a * b),
    reduce_max: reduction(-Infinity, Math.max), reduce_min: reduction(Infinity, Math.min),
    all: reduction(1, (a, b) => a & b), any: reduction(0, (a, b) => a | b),
    argmax: best((a, b) => a > b), argmin: best((a, b) => a < b),
    cumsum: running((a, b) => a + b), cumprod: running((a, b) => a * b),
    cummax: running(Math.max), cummin: running(Math.min),
    sort: sorted(false), argsort: sorted(true),
  };
  function operation(name, params, operands, type, shape) {
    const shapes = operands.map((operand) => operand.shape), from = operands.length ? operands[0].type : type;
    const whole = from.includes("int");
    if (OPERATIONS[name]) return OPERATIONS[name](params, shapes, shape);
    if (name === "select") return elementwise((c, x, y) => (c ? x : y), shapes, shape);
    if (name === "convert") return elementwise(from.startsWith("float") && LIMITS[type] ? saturate(type) : (x) => x, shapes, shape);
    if (name === "not") return elementwise(from === "bool" ? (x) => 1 - x : (x) => ~x, shapes, shape);
    if (name === "mul" && whole) return elementwise(Math.imul, shapes, shape);
    if (name === "div" && whole) return elementwise((x, y) => Math.trunc(x / y), shapes, shape);
    if (name === "shift_right_logical" && LIMITS[from] && LIMITS[from][0] < 0) {
      const mask = LIMITS[from][1] * 2 + 1;
      return elementwise((x, y) => (mask > 65535 ? x >>> y : (x & mask) >>> y), shapes, shape);
    }
    const call = UNARY[name] || BINARY[name];
    need(call, `unknown operation ${name}`);
    return elementwise(call, shapes, shape);
  }

  // -- functions: lists of operations; what is known beforehand is computed once

  class Fn {
    constructor(inputs, values, steps, outputs) { Object.assign(this, { inputs, values, steps, outputs }); }
    static read(described, tensors) {
      const values = [], steps = [], inputs = described.inputs.map(([type, shape], i) => {
        values.push({ type, shape });
        return i;
      });
      for (const [name, operands, params, type, shape] of described.operations) {
        const value = { type, shape }, result = values.length;
        values.push(value);
        if (name === "tensor") value.data = tensors[params.name];
        else if (name === "constant") value.data = ARRAYS[type].from(params.values, Number);
        else if (name === "affine") value.data = ARRAYS[type].from(positions(shape, params.steps, params.start));
        else steps.push({ result, operands, call: operation(name, params, operands.map((i) => values[i]), type, shape) });
      }
      return new Fn(inputs, values, steps, described.outputs).given();
    }
    given(...known) { // the function of the remaining inputs
      const values = this.values.map((value) => ({ ...value })), steps = [];
      known.forEach((data, i) => { values[this.inputs[i]].data = data; });
      for (const step of this.steps) {
        if (step.operands.every((i) => values[i].data)) compute(values, step);
        else steps.push(step);
      }
      return new Fn(this.inputs.slice(known.length), values, steps, this.outputs);
    }
    call(...inputs) {
      const values = this.values.map((value) => ({ ...value }));
      inputs.forEach((data, i) => { values[this.inputs[i]].data = data; });
      for (const step of this.steps) compute(values, step);
      return this.outputs.map((i) => values[i].data);
    }
  }
  function compute(values, { result, operands, call }) {
    const { type, shape } = values[result], out = new ARRAYS[type](product(shape));
    call(out, ...operands.map((i) => values[i].data));
    if (type === "float16") for (let i = 0; i < out.length; i++) out[i] = half(out[i]);
    values[result].data = out;
  }

  // -- readings

  function flat(given, shape, what) { // numbers of nested lists, checked for their shape
    if (!shape.length) { need(typeof given === "number", `${what} must be a number`); return [given]; }
    const listed = given && typeof given === "object" && typeof given.length === "number";
    need(listed && given.length === shape[0], `${what} must have ${shape[0]} entries along an axis`);
    return Array.from(given).flatMap((item) => flat(item, shape.slice(1), what));
  }
  function limit(limits, agent, place) { // one number for all, one an agent, or one for each
    const own = Array.isArray(limits) ? limits[agent] : limits;
    return Array.isArray(own) ? own.flat(Infinity)[place] : own;
  }
  function stored(part, given, agent) {
    const values = flat(given, part.shape, part.name || "a reading");
    values.forEach((value, place) => {
      const [low, high] = [limit(part.low, agent, place), limit(part.high, agent, place)];
      const inside = value >= low && value <= high && (!limit(part.whole, agent, place) || Number.isInteger(value));
      need(inside, `${part.name || "a reading"}: expected numbers from ${low} to ${high}; given ${value}`);
    });
    return ARRAYS[part.type].from(part.type === "float16" ? values.map(half) : values);
  }
  function laid(layout, given) {
    if (typeof layout === "number") return [given];
    if (layout === null) return [];
    const listed = Array.isArray(layout);
    need(given && typeof given === "object" && (!listed || given.length === layout.length), "a reading has other parts");
    return (listed ? layout.map((_, i) => i) : Object.keys(layout).sort()).flatMap((key) => laid(layout[key], given[key]));
  }

  // -- teams

  class Team {
    constructor(exported) {
      need(exported.format === "icmape-js" && exported.version === 1, "this is not a team that icmape exported");
      const { functions, ...described } = exported.program;
      Object.assign(this, described, { delta: exported.delta, functions: {} });
      const tensors = {};
      for (const [name, tensor] of Object.entries(exported.tensors)) tensors[name] = decoded(tensor);
      for (const name of Object.keys(functions)) this.functions[name] = Fn.read(functions[name], tensors);
    }
    fn(name) {
      need(this.functions[name], `this team has no ${name}: ${Object.values(this.missing).join("; ")}`);
      return this.functions[name];
    }
    takesMissing(part) { return (this.misses || []).includes(part); } // "agent" or "inference"
    needMissing(part) {
      need(this.takesMissing(part), `the ${part} of this team takes no missing readings; if an older version exported it, export it again`);
    }
    reading(agent, given) { return laid(this.layout, given).map((part, i) => stored(this.parts[i], part, agent)); }
    agent(index, first) { return new Agent(this, index, first); }
    nothing() { return this.parts.map((part) => new ARRAYS[part.type](product(part.shape))); }
    // actions: rounds of one entry an agent; observations: rounds of one reading an agent; first: one reading an agent
    posterior(actions, observations, first) {
      const { agents, horizon } = this.sizes, everyone = Array.from({ length: agents }, (_, i) => i);
      need(!this.first || first, "this team's agents see something before round 0: give it as `first`");
      need(actions.length === observations.length, "actions and observations differ in rounds");
      need(actions.length < horizon, `at most ${horizon - 1} rounds`);
      const joint = (row, some) => {
        need(row.length === agents, `a round has ${agents} readings`);
        return everyone.map((i) => (some && row[i] === null ? this.nothing() : this.reading(i, row[i])));
      };
      const start = first ? joint(first, false) : everyone.map(() => this.nothing());
      const rounds = observations.map((row) => joint(row, true));
      this.needAllowed(actions, observations, first);
      let state = this.fn("begin").call(...this.stacked(start));
      rounds.forEach((row, t) => {
        const taken = actions[t], seen = observations[t];
        need(taken.length === agents && taken.every((a) => a === null || this.isAction(a)), "an action is no number of an action");
        need(everyone.every((i) => taken[i] !== null || seen[i] === null), "where an action is null, its reading must be null too");
        const marks = [taken, seen].map((values) => Uint8Array.from(values, (value) => +(value !== null)));
        if (seen.includes(null)) this.needMissing("inference");
        const read = this.takesMissing("inference") ? marks : [];
        state = this.fn("add").call(Int32Array.from(taken, (a) => a || 0), ...this.stacked(row), ...read, ...state);
      });
      const [scores, probabilities, decision, [confidence]] = this.fn("answer").call(...state);
      need(Number.isFinite(confidence), "the inference gives no finite scores for this data: check the readings");
      return { scores, probabilities, decision: Array.from(decision), confidence, name: this.answerName(decision) };
    }
    needAllowed(actions, observations, first) { // up to the first round in which it is not known what an agent did
      const gaps = observations.some((row) => row.includes(null));
      if (!this.masked || !this.functions.move || (gaps && !this.takesMissing("agent"))) return;
      for (let i = 0; i < this.sizes.agents; i++) {
        const actor = this.agent(i, first ? first[i] : undefined), known = actions.findIndex((row) => row[i] === null);
        observations.slice(0, known < 0 ? observations.length : known).forEach((row, t) => (row[i] === null ? actor.missed(actions[t][i]) : actor.see(actions[t][i], row[i])));
      }
    }
    isAction(action) { return Number.isInteger(action) && action >= 0 && action < this.sizes.actions; }
    stacked(rows) {
      return this.parts.map((part, k) => ARRAYS[part.type].from(rows.flatMap((row) => Array.from(row[k]))));
    }
    answerName(decision) {
      const { kind, shape, names } = this.answers;
      if (!names) return Array.from(decision).join(", ");
      return names[kind === "factored" ? decision.reduce((sum, n) => sum * shape[1] + n, 0) : decision[0]];
    }
  }
  class Agent {
    constructor(team, index, first) {
      need(Number.isInteger(index) && index >= 0 && index < team.sizes.agents, `agents are 0..${team.sizes.agents - 1}`);
      need(!team.first || first !== undefined, "this agent sees something before round 0: give it as `first`");
      Object.assign(this, { team, index, round: 0, stopped: false });
      this.move = team.fn("move").given(Int32Array.of(index));
      this.think(team.fn("open").call(Int32Array.of(index), ...(first === undefined ? team.nothing() : team.reading(index, first))));
    }
    think(outputs) {
      [this.scores, this.offered, this.allowed] = outputs.slice(-3);
      this.state = outputs.slice(0, -3);
    }
    act() {
      const action = this.choice();
      this.stopped = action === STOP;
      return action;
    }
    choice() {
      const { stop, sizes } = this.team, last = sizes.horizon - 1;
      if (this.round >= (stop.kind === "length" ? Math.min(stop.level, last) : last)) return STOP;
      need(!this.scores.some(Number.isNaN), `the scores of agent ${this.index} are not finite after ${this.round} rounds`);
      let choice = 0, top = -Infinity;
      this.offered.forEach((may, action) => {
        if (may && this.scores[action] > top) { top = this.scores[action]; choice = action; }
      });
      return stop.kind === "learned" && this.scores[sizes.actions] > top ? STOP : choice;
    }
    see(action, reading) { this.take(action, () => this.team.reading(this.index, reading), 1); }
    missed(action) { // the action that was taken; without one, that of act()
      this.team.needMissing("agent");
      need(!this.stopped, `agent ${this.index} chose STOP: the episode is over`);
      const taken = action === undefined || action === null ? this.choice() : action;
      need(taken !== STOP, `agent ${this.index} stops in round ${this.round}: after STOP there is no reading to miss`);
      this.take(taken, () => this.team.nothing(), 0);
    }
    take(action, read, arrived) {
      need(!this.stopped, `agent ${this.index} chose STOP: the episode is over`);
      need(this.round + 1 < this.team.sizes.horizon, `at most ${this.team.sizes.horizon - 1} rounds`);
      need(this.team.isAction(action) && this.allowed[action], `action ${action} is not allowed`);
      const seen = read(), marks = this.team.takesMissing("agent") ? [Uint8Array.of(1), Uint8Array.of(arrived)] : [];
      this.round += 1;
      this.think(this.move.call(Int32Array.of(this.round), Int32Array.of(action), ...seen, ...marks, ...this.state));
    }
  }
  const bytesOf = (data) => Uint8Array.from(atob(data), (c) => c.charCodeAt(0)).buffer;
  function decoded({ type, stored: kind, data, scales }) {
    if (kind === "float16") return Float32Array.from(new Uint16Array(bytesOf(data)), halfBits);
    if (!scales) return new ARRAYS[type](bytesOf(data));
    const numbers = new ARRAYS[kind](bytesOf(data)), each = new ARRAYS[type](bytesOf(scales)), width = numbers.length / each.length;
    return ARRAYS[type].from(numbers, (number, n) => number * each[Math.floor(n / width)]); // rows of numbers, each with a scale
  }
  return { STOP, decoded, load: (exported) => new Team(exported) };
})();
if (typeof module !== "undefined") module.exports = icmape;
