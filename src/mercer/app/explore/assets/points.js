// Many points by WebGL: one buffer of places, one of colors, one of looks. A pan or zoom changes four numbers and
// nothing is sent anew, which is what lets 100 000 points move. Written out here because the kept libraries for it
// bring far more than this page needs (regl-scatterplot comes with seven packages, deck.gl with a whole engine).
"use strict";

// A look is what becomes of a point: not drawn, faint, drawn, drawn larger on top.
export const HIDDEN = 0, FAINT = 1, PLAIN = 2, MARKED = 3;

const VERTEX = `
attribute vec2 place;
attribute vec4 color;
attribute float look;
uniform vec4 view;      // scale x, scale y, shift x, shift y
uniform float size;
uniform mediump float marked;   // whether this pass draws the marked points or the others
varying vec4 ink;
void main() {
  bool mine = look > 0.5 && (look > 2.5) == (marked > 0.5);
  gl_Position = mine ? vec4(place * view.xy + view.zw, 0.0, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
  gl_PointSize = look > 2.5 ? size + 3.0 : size;
  ink = vec4(color.rgb, look < 1.5 ? color.a * 0.12 : color.a);
}`;
const FRAGMENT = `
precision mediump float;
varying vec4 ink;
uniform mediump float marked;
uniform vec3 rim;
void main() {
  float far = length(gl_PointCoord - 0.5) * 2.0;
  if (far > 1.0) discard;
  vec3 shade = marked > 0.5 && far > 0.68 ? rim : ink.rgb;
  gl_FragColor = vec4(shade * ink.a, ink.a);
}`;

function program(gl) {
  const made = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
  return made;
}

export class PointMap {
  constructor(canvas) {
    this.canvas = canvas;
    const gl = canvas.getContext("webgl", { antialias: false, premultipliedAlpha: true });
    if (!gl) throw new Error("this browser draws no WebGL, which the map needs");
    this.gl = gl;
    this.program = program(gl);
    gl.useProgram(this.program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.buffers = { place: gl.createBuffer(), color: gl.createBuffer(), look: gl.createBuffer(), order: gl.createBuffer() };
    this.uniforms = {};
    for (const name of ["view", "size", "marked", "rim"]) this.uniforms[name] = gl.getUniformLocation(this.program, name);
    this.n = 0;
    this.rim = [0, 0, 0];
    this.center = [0.5, 0.5];
    this.scale = 1;  // CSS pixels for one unit of the map
    this.waiting = false;
    gl.getExtension("OES_element_index_uint");
    this.share = 1;  // of the points that are drawn while the map moves
    this.moving = null;
    this.last = 0;
    this.whole = true;  // whether all is shown, and is to stay so when the window changes
  }

  fill(name, data, size, type, normalized) {
    const gl = this.gl, at = gl.getAttribLocation(this.program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, size, type, normalized, 0, 0);
  }

  setPlaces(places) {  // Float32Array of x, y, x, y, ...
    this.places = places;
    this.n = places.length / 2;
    this.fill("place", places, 2, this.gl.FLOAT, false);
    this.shuffle();
    this.index();
  }

  setColors(colors) {  // Uint8Array of red, green, blue, alpha, ...
    this.fill("color", colors, 4, this.gl.UNSIGNED_BYTE, true);
    this.redraw();
  }

  setLooks(looks) {  // Uint8Array
    this.looks = looks;
    this.passes = looks.includes(MARKED) ? [0, 1] : [0];  // the marked ones come last, on top
    this.fill("look", looks, 1, this.gl.UNSIGNED_BYTE, false);
    this.redraw();
  }

  // ---- where things are

  bounds() {
    const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
    for (let i = 0; i < this.n; i += 1) {
      for (const k of [0, 1]) {
        const value = this.places[2 * i + k];
        if (value < low[k]) low[k] = value;
        if (value > high[k]) high[k] = value;
      }
    }
    return this.n ? [low, high] : [[0, 0], [1, 1]];
  }

  fit() {
    const [low, high] = this.bounds(), { clientWidth: w, clientHeight: h } = this.canvas;
    this.whole = true;
    this.center = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
    this.scale = Math.min((w - 48) / (high[0] - low[0] || 1), (h - 72) / (high[1] - low[1] || 1));
    this.redraw();
  }

  toScreen(i) {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    return [
      w / 2 + (this.places[2 * i] - this.center[0]) * this.scale,
      h / 2 - (this.places[2 * i + 1] - this.center[1]) * this.scale];
  }

  toMap(x, y) {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    return [this.center[0] + (x - w / 2) / this.scale, this.center[1] - (y - h / 2) / this.scale];
  }

  resized() {
    if (this.whole) this.fit(); else this.redraw();
  }

  pan(dx, dy) {
    this.whole = false;
    this.center = [this.center[0] - dx / this.scale, this.center[1] + dy / this.scale];
    this.move();
  }

  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const before = this.toMap(x, y);
    this.whole = false;
    this.scale *= factor;
    const after = this.toMap(x, y);
    this.center = [this.center[0] + before[0] - after[0], this.center[1] + before[1] - after[1]];
    this.move();
  }

  // While the map moves, a browser without a graphics card may not draw all points in time. Then a part of them is
  // drawn, as large as leaves 20 frames a second, and all of them as soon as the map rests.
  move() {
    clearTimeout(this.moving);
    this.moving = setTimeout(() => { this.moving = null; this.last = 0; this.redraw(); }, 160);
    this.redraw();
  }

  adapt() {
    const now = performance.now(), since = now - this.last;
    if (this.moving !== null && this.last && since < 2000) {
      if (since > 50) this.share = Math.max(0.03, this.share * Math.max(0.4, 45 / since));
      else if (since < 30) this.share = Math.min(1, this.share * 1.15);
    }
    this.last = this.moving === null ? 0 : now;
  }

  shuffle() {  // a part of the points is a part of every group, and no group lies over the others
    const order = new Uint32Array(this.n);
    let seed = 1;
    for (let i = 0; i < this.n; i += 1) {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      const j = Math.floor((seed / 4294967296) * (i + 1));
      order[i] = order[j];
      order[j] = i;
    }
    this.gl.bindBuffer(this.gl.ELEMENT_ARRAY_BUFFER, this.buffers.order);
    this.gl.bufferData(this.gl.ELEMENT_ARRAY_BUFFER, order, this.gl.STATIC_DRAW);
  }

  // ---- which point is there

  index() {  // points by cells of a grid, so that a pointer asks a few of them
    const [low, high] = this.bounds();
    const side = Math.max(1, Math.min(512, Math.round(Math.sqrt(this.n / 4))));
    const step = Math.max(high[0] - low[0], high[1] - low[1]) / side || 1;
    const cell = (x, k) => Math.min(side - 1, Math.max(0, Math.floor((x - low[k]) / step)));
    const starts = new Uint32Array(side * side + 1), order = new Uint32Array(this.n), cells = new Uint32Array(this.n);
    for (let i = 0; i < this.n; i += 1) {
      cells[i] = cell(this.places[2 * i], 0) + side * cell(this.places[2 * i + 1], 1);
      starts[cells[i] + 1] += 1;
    }
    for (let c = 0; c < side * side; c += 1) starts[c + 1] += starts[c];
    const next = starts.slice();
    for (let i = 0; i < this.n; i += 1) { order[next[cells[i]]] = i; next[cells[i]] += 1; }
    this.grid = { side, cell, starts, order };
  }

  nearest(x, y, reach = 14) {
    const [px, py] = this.toMap(x, y), r = reach / this.scale, { side, cell, starts, order } = this.grid;
    let best = null, least = r * r;
    for (let cy = cell(py - r, 1); cy <= cell(py + r, 1); cy += 1) {
      for (let cx = cell(px - r, 0); cx <= cell(px + r, 0); cx += 1) {
        for (let k = starts[cx + side * cy]; k < starts[cx + side * cy + 1]; k += 1) {
          const i = order[k], far = (this.places[2 * i] - px) ** 2 + (this.places[2 * i + 1] - py) ** 2;
          if (far <= least && this.looks[i] !== HIDDEN) { least = far; best = i; }
        }
      }
    }
    return best;
  }

  beside(i, dx, dy) {  // the nearest point that lies that way
    const [x, y] = this.toScreen(i);
    let best = i, least = Infinity;
    for (let j = 0; j < this.n; j += 1) {
      const [u, v] = this.toScreen(j), along = (u - x) * dx + (v - y) * dy, across = Math.abs((u - x) * dy - (v - y) * dx);
      if (along > 0.5 && across <= along && along + across < least && this.looks[j] !== HIDDEN) {
        least = along + across;
        best = j;
      }
    }
    return best;
  }

  inside(loop) {  // the points within a closed line, given in pixels
    const line = loop.map(([x, y]) => this.toMap(x, y)), found = [];
    for (let i = 0; i < this.n; i += 1) {
      if (this.looks[i] === HIDDEN) continue;
      const x = this.places[2 * i], y = this.places[2 * i + 1];
      let odd = false;
      for (let a = 0, b = line.length - 1; a < line.length; b = a, a += 1) {
        const [ax, ay] = line[a], [bx, by] = line[b];
        if ((ay > y) !== (by > y) && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
      }
      if (odd) found.push(i);
    }
    return found;
  }

  // ---- drawing

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.adapt(); this.draw(); });
  }

  draw() {
    const gl = this.gl, { clientWidth: w, clientHeight: h } = this.canvas, ratio = devicePixelRatio || 1;
    const width = Math.round(w * ratio), height = Math.round(h * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!this.n || !this.looks) return;
    const sx = (2 * this.scale) / w, sy = (2 * this.scale) / h;
    gl.uniform4f(this.uniforms.view, sx, sy, -this.center[0] * sx, -this.center[1] * sy);
    // Few points may be large; of many, each is small until one looks closely.
    const size = Math.min(9, Math.max(2.2, 220 / Math.sqrt(this.n))) * Math.min(3, Math.max(1, Math.sqrt(this.scale / w)));
    gl.uniform1f(this.uniforms.size, size * ratio);
    gl.uniform3fv(this.uniforms.rim, this.rim);
    for (const pass of this.passes) {
      gl.uniform1f(this.uniforms.marked, pass);
      // Marked points are drawn all, as somebody has chosen them.
      const count = this.moving !== null && pass === 0 ? Math.ceil(this.share * this.n) : this.n;
      gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 0);
    }
  }
}
