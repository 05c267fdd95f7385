// Draws figures as SVG, and updates those drawn before. Their JSON form: reports/page/drawing.py.
//
//   Figure.draw(element, figure)
//
// Dragging zooms, a double click resets; all figures of a page whose axes show the same share the
// zoom. Tab goes from block to block, the arrow keys along and between rows, + and - zoom, 0 resets,
// Enter opens what a mark stands for, Escape hides the details. An update keeps all of this.
const Figure = (() => {
  const LOOKS = {  // by the first class of a kind; what lies over what, how high, how wide at least, whether at the foot
    fault: {layer: 1, high: .9, least: 8}, records: {layer: 2, high: .2, low: true}, shared: {layer: 2, high: .2, low: true},
    act: {layer: 3}, finding: {layer: 3},
  };
  const USUAL = {layer: 0, high: .78, least: 1.5};
  const HEAD_PX = 24, LANE_PX = 20, LOWEST_PX = 4, LANES_PX = 800;  // heights of rows, and of all lanes if many
  const LINE_PX = 18, PHASES_PX = 22, AXIS_PX = 44;
  const LETTER_PX = 6.2;  // the width of a letter of 11 pixels, about
  const MARK_PX = 9, POINT_PX = 4;
  const LISTED = 8;  // how many marks that share a place say what they are
  const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const charts = new Map();
  const zoomed = {};  // the part of the axis that is shown, by what the axis shows

  const look = bar => ({...USUAL, ...LOOKS[bar.kind.split(" ", 1)[0]]});
  const drop = ({low}, height, high) => (height - high) * (low ? .95 : .5);  // from the top of its row to a bar; most are in the middle
  const clamp = (value, least, most) => Math.max(least, Math.min(most, value));
  const make = (tag, parent) => parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", tag));

  function put(node, attributes, text) {  // sets what changed
    const was = node.was ??= {};
    for (const [name, value] of Object.entries(attributes)) {
      if (was[name] !== value) node.setAttribute(name, was[name] = value);
    }
    if (text !== undefined && was.text !== text) node.textContent = was.text = text;
  }

  function each(parent, tag, items, set) {  // one child for each item; those that are there are used again
    const nodes = parent.nodes ??= [];
    items.forEach((item, at) => set(nodes[at] ??= make(tag, parent), item, at));
    for (const node of nodes.splice(items.length)) node.remove();
  }

  function hatch() {  // the pattern of faults; an element that is not displayed would have none
    if (document.getElementById("figure-hatch")) return;
    const svg = document.body.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
    put(svg, {class: "figure-patterns", width: 0, height: 0, "aria-hidden": "true"});
    const pattern = make("pattern", svg);
    put(pattern, {id: "figure-hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"});
    put(make("line", pattern), {x1: 0, x2: 0, y1: 0, y2: 5});
  }

  // Names that fit beside rows: of a long one its begin, its end, and where it parts from the others.
  function shortened(names, most) {
    const parting = (one, other) => {
      let at = 0;
      while (at < one.length && one[at] === other[at]) at += 1;
      return at;
    };
    return names.map(name => {
      if (name.length <= most) return name;
      const parts = new Set(names.map(other => parting(name, other)));
      let label = name;
      for (let width = most >> 1; width > 0 && label.length > most; width -= 1) {
        const starts = [0, ...[...parts].map(part => Math.max(0, part - Math.floor(width / 3))), name.length - width];
        let end = 0;
        label = "";
        for (const start of starts.sort((a, b) => a - b)) {
          label += (start > end ? "…" : "") + name.slice(Math.max(end, start), start + width);
          end = Math.max(end, start + width);
        }
      }
      return label.length > most ? label.slice(0, most - 1) + "…" : label;
    });
  }

  function ticks([from, to], most, axis) {
    const least = (to - from) / most;
    const power = 10 ** Math.floor(Math.log10(least));
    let step = [1, 2, 5, 10].map(times => times * power).find(each => each >= least * .999);
    const zero = axis.shows === "date" ? axis.zero_ms / 1000 : 0;
    if (zero && least > 1) step = STEPS_S.find(each => each >= least) ?? 86400 * Math.ceil(least / 86400);
    const at = [];
    for (let n = Math.ceil((zero + from) / step); n * step <= zero + to; n += 1) at.push(n * step - zero);
    if (!zero) {
      const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      return at.map(each => [each, `${each.toFixed(digits)} s`]);
    }
    const [first, last] = step >= 86400 ? [5, 10] : [to - from > 86400 ? 5 : 11, step >= 60 ? 16 : step >= 1 ? 19 : 23];
    return at.map(each => [each, date(axis, each).slice(first, last)]);
  }

  const date = (axis, at) => new Date(Math.round(axis.zero_ms + at * 1000)).toISOString().replace("T", " ").slice(0, 23);

  function moment(axis, at) {
    if (axis.shows === "date") return `${date(axis, at)} UTC`;
    const offset = `${at < 0 ? "" : "+"}${at.toFixed(3)} s`;
    return axis.zero_ms === null ? offset : `${offset} · ${date(axis, at).slice(11)} UTC`;
  }

  function times({axis, end}, {from, to}) {
    if (axis.shows === "amount") return [];
    if (to === undefined || to === from) return [`at ${moment(axis, from)}`];
    if (to === null) return [`from ${moment(axis, from)}`, `goes on at the end, after ${(end - from).toFixed(3)} s`];
    return [`from ${moment(axis, from)}`, `to ${moment(axis, to)}`, `for ${(to - from).toFixed(3)} s`];
  }

  class Chart {
    constructor(element) {
      this.element = element;
      this.labels = new Map();
      this.current = null;  // what shows its details: {row, item}; `row` is one of this.rows
      this.pointer = null;  // where the pointer rests: [x, y]
      this.svg = make("svg", element);
      put(this.svg, {role: "group", "aria-label": element.getAttribute("aria-label") ?? "figure"});
      for (const part of ["phases", "grid", "axis", "over", "blocks", "front"]) {
        this[part] = make("g", this.svg);
        put(this[part], {class: part, ...part === "blocks" ? {} : {"aria-hidden": "true"}});
      }
      this.caption = make("text", this.axis);
      this.ring = make("rect", this.front);
      this.chosen = make("rect", this.front);
      put(this.chosen, {class: "chosen", width: 0, height: 0});
      this.reset = element.appendChild(document.createElement("button"));
      this.reset.type = "button";
      this.reset.className = "reset";
      this.reset.textContent = "show all";
      this.reset.addEventListener("click", () => this.zoom(null));
      this.tip = element.appendChild(document.createElement("div"));
      this.tip.className = "tip";
      this.tip.setAttribute("aria-hidden", "true");  // the rows say the same
      this.tip.hidden = true;
      this.listen();
      new ResizeObserver(() => {
        if (this.figure && element.clientWidth && element.clientWidth !== this.width) this.paint();
      }).observe(element);
    }

    // Painting

    paint() {
      const {figure, element} = this;
      this.width = element.clientWidth || 800;
      const narrow = this.width < 600;
      this.left = narrow ? Math.max(64, Math.round(this.width * .24)) : 150;
      const texts = figure.blocks.some(block => block.rows.some(row => row.text));
      this.right = this.width - (texts ? 56 : 20);
      this.range = zoomed[figure.axis.shows] ?? [0, figure.end];
      const [from, to] = this.range;
      this.scale = (this.right - this.left) / (to - from || 1);
      this.x = at => this.left + (at - from) * this.scale;
      this.rows = [];
      this.top = figure.phases.length ? PHASES_PX : 4;
      let y = this.top;
      const blocks = figure.blocks.map(block => {
        const titles = this.titles(block);
        const top = y + titles.length * LINE_PX + (titles.length ? 4 : 0);
        const lanes = block.rows.filter(row => !row.head).length;
        const lane_px = clamp(LANES_PX / lanes, LOWEST_PX, LANE_PX);
        let at = top;
        const rows = block.rows.map((row, number) => {
          const height = row.head ? HEAD_PX : lane_px;
          at += height;
          return {row, block, number, top: at - height, height, items: null};
        });
        const made = {block, titles, title_y: y + LINE_PX - 4, bottom: at, rows, lane_px};
        this.rows.push(...rows);
        y = at + 8;
        return made;
      });
      this.bottom = y;
      const height = Math.ceil(y + AXIS_PX);
      put(this.svg, {viewBox: `0 0 ${this.width} ${height}`});
      this.paint_axis();
      this.paint_phases();
      each(this.over, "rect", figure.bands, (node, band) => this.put_band(node, band, this.top, this.bottom));
      each(this.blocks, "g", blocks, (node, block) => this.paint_block(node, block));
      this.reset.hidden = !zoomed[figure.axis.shows];
      this.find_again();
    }

    titles({name, title}) {  // lines of [class, text]; a long name is broken, not cut
      const most = Math.floor(this.width / 8.4);
      const lines = (name.match(new RegExp(`.{1,${most}}`, "gu")) ?? []).map(part => [["name", part]]);
      if (title && lines.length && lines.at(-1)[0][1].length + title.length < most) lines.at(-1).push(["title", title]);
      else lines.push(...(title.match(new RegExp(`.{1,${most}}(?: |$)`, "gu")) ?? []).map(part => [["title", part]]));
      return lines;
    }

    paint_axis() {
      const {axis} = this.figure;
      const most = Math.max(2, (this.right - this.left) / (axis.shows === "date" ? 120 : 76));
      const marks = ticks(this.range, most, axis);
      each(this.grid, "g", marks, (node, [at, text]) => {
        const x = this.x(at).toFixed(1);
        node.line ??= make("path", node);
        node.label ??= make("text", node);
        put(node.line, {d: `M${x} ${this.top}V${this.bottom + 5}`});
        put(node.label, {x, y: this.bottom + 18}, text);
      });
      put(this.caption, {class: "title", x: (this.left + this.right) / 2, y: this.bottom + 38}, axis.title);
    }

    paint_phases() {
      const begun = this.figure.phases;
      let free = 0;
      each(this.phases, "g", begun, (node, {name, at}, number) => {
        const x = clamp(this.x(at), this.left, this.right);
        const next = clamp(this.x(begun[number + 1]?.at ?? this.figure.end), this.left, this.right);
        const long = name.length * LETTER_PX + 6;
        const last = number === begun.length - 1;
        const after = x + long <= (last ? this.width : next) && x >= free;
        const shown = next > x && (after || x - long >= free);
        if (shown) free = after ? x + long : x;
        node.ground ??= make("rect", node);
        node.edge ??= make("path", node);
        node.name ??= make("text", node);
        put(node.ground, {class: number % 2 ? "odd" : "even", x, y: this.top, width: next - x, height: this.bottom - this.top});
        put(node.edge, {d: next > x ? `M${x} ${this.top - 14}V${this.bottom}` : "M0 0"});
        put(node.name, {x: after ? x + 3 : x - 3, y: this.top - 7, "text-anchor": after ? "start" : "end"}, shown ? name : "");
      });
    }

    put_band(node, {from, to, kind}, top, bottom) {
      const [x0, x1] = [from, to ?? this.figure.end].map(at => clamp(this.x(at), this.left, this.right));
      const seen = this.x(to ?? this.figure.end) > this.left && this.x(from) < this.right;
      put(node, {class: `band ${kind}`, x: x0, y: top, width: seen ? Math.max(1, x1 - x0) : 0, height: bottom - top});
    }

    paint_block(node, {block, titles, title_y, bottom, rows, lane_px}) {
      for (const [part, tag] of [["heading", "g"], ["lanes", "g"], ["bands", "g"], ["lines", "path"]]) {
        if (!node[part]) put(node[part] = make(tag, node), {class: part, ...part === "lanes" ? {} : {"aria-hidden": "true"}});
      }
      put(node, {role: "group", "aria-label": `${block.name} ${block.title}`.trim() || "rows"});
      each(node.heading, "text", titles, (node, line, at) => {
        put(node, {x: 2, y: title_y + at * LINE_PX});
        each(node, "tspan", line, (node, [kind, text], at) => put(node, {class: kind, dx: at * 8}, text));
      });
      const every = Math.ceil(11 / lane_px), heads = rows.filter(({row}) => row.head).length;
      const names = this.names(rows);
      const stop = rows.includes(this.focused) ? this.focused.number : clamp(node.stop ?? 0, 0, rows.length - 1);
      each(node.lanes, "g", rows, (node, row) => {
        row.node = node;
        node.place = row;
        this.paint_row(row, row.row.head || (row.number - heads) % every === 0 ? names[row.number] : "", row.number === stop);
      });
      node.rows = rows;
      const first = rows.find(({row}) => !row.head)?.top ?? bottom;
      each(node.bands, "rect", block.bands, (node, band) => this.put_band(node, band, first, bottom));
      const found = block.rows.flatMap(row => row.bars.filter(bar => bar.kind === "finding").map(bar => this.x(bar.from)));
      const seen = found.filter(x => x >= this.left && x <= this.right);
      put(node.lines, {class: "lines finding", d: seen.map(x => `M${x.toFixed(1)} ${rows[0].top + HEAD_PX - 3}V${bottom}`).join("") || "M0 0"});
    }

    names(rows) {
      const most = Math.floor((this.left - 10) / LETTER_PX);
      const known = rows.map(({row}) => row.name);
      const key = `${most} ${known.join("\n")}`;
      if (!this.labels.has(key)) this.labels.set(key, shortened(known, most));
      return this.labels.get(key);
    }

    // What a row shows, in the order of its times: bars, and marks, of which near ones are one.
    items(place) {
      if (place.items) return place.items;
      const {x, figure} = this;
      const items = [];
      let mark = {};  // the last one with a number, and the last one without
      for (const bar of place.row.bars) {
        const {layer, high, least, low} = look(bar);
        if (bar.to !== undefined) {
          const x0 = x(bar.from);
          items.push({bars: [bar], layer, high, low, x0, x1: Math.max(x(bar.to ?? figure.end), x0 + least)});
          continue;
        }
        const at = x(bar.from), sort = bar.text ? "number" : "point";
        const radius = Math.min(bar.text ? MARK_PX : POINT_PX, place.height / 2);
        const near = mark[sort];
        if (near && at - radius < near.x1 - radius / 2) {
          near.bars.push(bar);
          near.x1 = at + radius;
        } else {
          items.push(mark[sort] = {bars: [bar], layer, radius, x0: at - radius, x1: at + radius});
        }
      }
      for (const item of items.filter(item => item.bars[0].text && item.radius)) {
        const numbers = item.bars.map(bar => bar.text);
        item.text = numbers.length > 2 ? `${numbers[0]}–${numbers.at(-1)}` : numbers.join(", ");
        const wide = Math.max(item.x1 - item.x0, item.text.length * LETTER_PX + 6);
        const middle = clamp((item.x0 + item.x1) / 2, this.left + wide / 2 - MARK_PX, this.width - wide / 2);
        if (item.x1 > this.left && item.x0 < this.right) [item.x0, item.x1] = [middle - wide / 2, middle + wide / 2];
      }
      return place.items = items;
    }

    paint_row(place, name, stops) {
      const {node, row, top, height} = place;
      for (const [part, tag] of [["ground", "rect"], ["name", "text"], ["bars", "g"], ["texts", "g"]]) {
        if (!node[part]) put(node[part] = make(tag, node), {class: part});
      }
      const said = this.focused === place ? {} : {"aria-valuetext": `${row.bars.length} shown`, "aria-valuenow": 0};
      put(node, {
        class: row.head ? "row head" : "row", role: "slider", tabindex: stops ? 0 : -1, "aria-label": row.name || "row",
        "aria-valuemin": 0, "aria-valuemax": row.bars.length, ...said,
      });
      put(node.ground, {x: 0, y: top, width: this.width, height});
      put(node.name, {x: this.left - 7, y: top + height / 2, class: height < 14 ? "name low" : "name"}, name);
      const shown = this.items(place).filter(item => item.x1 > this.left && item.x0 < this.right);
      const drawn = shown.map(item => ({...item, kind: item.bars[0].kind}));
      for (const item of [...drawn]) {
        if (/^fault|second$/.test(item.kind)) drawn.push({...item, kind: "hatch"});
      }
      drawn.sort((a, b) => a.layer - b.layer);
      each(node.bars, "rect", drawn, (node, item) => {
        const high = item.radius ? 2 * item.radius : Math.max(2, item.high * height - (row.head ? 2 : 0));
        const [x0, x1] = item.radius ? [item.x0, item.x1] : [item.x0, item.x1].map(x => clamp(x, this.left, this.right));
        const hatched = item.kind === "hatch";
        put(node, {
          class: hatched ? "hatch" : `${item.radius ? "mark" : "bar"} ${item.kind}`, fill: hatched ? "url(#figure-hatch)" : "", x: x0.toFixed(1), y: (top + drop(item, height, high)).toFixed(1),
          width: (x1 - x0).toFixed(1), height: high.toFixed(1), rx: item.radius ?? (high > 8 ? 1.5 : 0),
        });
      });
      const texts = shown.flatMap(item => {
        const text = item.text ?? (item.radius ? "" : item.bars[0].text);
        const [x0, x1] = item.radius ? [item.x0, item.x1] : [item.x0, item.x1].map(x => clamp(x, this.left, this.right));
        const fits = item.radius || x1 - x0 >= (text ?? "").length * LETTER_PX + 4;
        return text && fits && height >= 10 ? [{text, x: (x0 + x1) / 2, kind: `label ${item.bars[0].kind}`}] : [];
      });
      if (row.text && height >= 10) {
        const end = Math.max(this.left, ...shown.map(item => item.x1));
        texts.push({text: row.text, x: Math.min(end, this.right) + 5, kind: "total"});
      }
      each(node.texts, "text", texts, (node, {text, x, kind}) => put(node, {class: kind, x: x.toFixed(1), y: top + height / 2}, text));
    }

    // Details

    lines({row, item}) {
      const listed = item.bars.slice(0, LISTED).flatMap(bar => [...bar.hover, ...times(this.figure, bar)]);
      const more = item.bars.length - LISTED;
      return [row.row.name, ...listed, ...more > 0 ? [`and ${more} more here: zoom in`] : [], ...item.bars[0].opens ? ["click to read it"] : []];
    }

    show(current, [x, y] = []) {
      this.current = current;
      this.tip.hidden = !current;
      put(this.ring, {class: current ? "ring" : "none"});
      if (!current) return;
      const {row, item} = current;
      const lines = this.lines(current);
      this.tip.replaceChildren(...lines.map((text, at) => {
        const line = document.createElement(at ? "div" : "b");
        line.textContent = text;
        return line;
      }));
      const [x0, x1] = [item.x0, item.x1].map(each => clamp(each, this.left, this.right + MARK_PX));
      const high = item.radius ? 2 * item.radius : item.high * row.height;
      put(this.ring, {x: x0 - 1.5, width: x1 - x0 + 3, y: row.top + drop(item, row.height, high) - 1.5, height: high + 3, rx: item.radius ? item.radius + 1.5 : 2});
      if (this.focused === row) {
        const {node, row: {bars}} = row;
        put(node, {"aria-valuenow": bars.indexOf(item.bars[0]) + 1, "aria-valuetext": lines.slice(1).join("; ")});
      }
      const box = this.svg.getBoundingClientRect();
      const part = box.width / this.width || 1;
      const below = (y ?? row.top + row.height) + 16, above = (y ?? row.top) - 8 - this.tip.offsetHeight;
      const room = box.top + below + this.tip.offsetHeight < innerHeight || box.top + above < 0;
      this.tip.style.left = `${clamp((x ?? (x0 + x1) / 2) * part + 10, 0, Math.max(0, this.width - this.tip.offsetWidth))}px`;
      this.tip.style.top = `${room ? below : above}px`;
    }

    find_again() {  // after an update: the focus, and what showed its details
      const {current, focused} = this;
      const same = was => was && this.rows.find(({row, block}) => row.name === was.row.name && block.name === was.block.name);
      this.focused = same(focused);
      if (this.pointer) return this.point(...this.pointer);
      const row = same(current?.row);
      if (!row) return this.show(null);
      const [{from, kind}] = current.item.bars;
      const item = this.items(row).find(item => item.bars.some(bar => bar.from === from && bar.kind.split(" ")[0] === kind.split(" ")[0]));
      this.show(item ? {row, item} : null);
    }

    point(x, y) {  // shows what is at a place: the uppermost, and of those the nearest
      const row = this.rows.find(({top, height}) => y >= top && y < top + height);
      if (!row) return this.show(null);
      const away = item => Math.max(0, item.x0 - x, x - item.x1);
      const near = this.items(row).filter(item => away(item) <= 3 && x >= this.left - MARK_PX && x <= this.right + MARK_PX);
      near.sort((a, b) => b.layer - a.layer || away(a) - away(b));
      if (near.length) return this.show({row, item: near[0]}, [x, y]);
      if (x >= this.left) return this.show(null);
      this.show({row, item: {bars: [], x0: this.left, x1: this.left, high: 0}}, [x, y]);  // its name may be shortened
    }

    // Zoom

    zoom(range) {
      const {axis: {shows}, end} = this.figure;
      if (range) {
        const long = clamp(range[1] - range[0], .001, end);
        const from = clamp(range[0], 0, end - long);
        range = long >= end ? null : [from, from + long];
      }
      zoomed[shows] = range;
      for (const chart of charts.values()) {
        if (chart.figure.axis.shows === shows) chart.paint();
      }
    }

    // Pointer and keys

    listen() {
      const {svg, element} = this;
      let began = null;
      const place = event => {
        const box = svg.getBoundingClientRect();
        const part = this.width / box.width;
        return [(event.clientX - box.left) * part, (event.clientY - box.top) * part];
      };
      const at = x => this.range[0] + (clamp(x, this.left, this.right) - this.left) / this.scale;
      const choose = x => put(this.chosen, {
        x: Math.min(x, began), y: this.top, width: Math.abs(x - began), height: this.bottom - this.top,
      });
      svg.addEventListener("pointerdown", event => {
        if (event.button || !event.isPrimary) return;
        const [x, y] = place(event);
        if (x >= this.left - MARK_PX) began = clamp(x, this.left, this.right);
        this.point(x, y);
      });
      svg.addEventListener("pointermove", event => {
        const [x, y] = place(event);
        if (began !== null && Math.abs(x - began) > 6) {
          svg.setPointerCapture(event.pointerId);
          this.pointer = null;
          this.show(null);
          choose(clamp(x, this.left, this.right));
        } else if (began === null) {
          this.point(...this.pointer = [x, y]);
        }
      });
      const end = event => {
        const [x] = place(event), was = began;
        began = null;
        put(this.chosen, {width: 0});
        if (was === null || event.type === "pointercancel") return;
        if (Math.abs(x - was) > 6) this.zoom([at(Math.min(x, was)), at(Math.max(x, was))]);
        else this.open();
      };
      svg.addEventListener("pointerup", end);
      svg.addEventListener("pointercancel", end);
      svg.addEventListener("pointerleave", event => {
        this.pointer = null;
        if (event.pointerType !== "touch" && !this.focused) this.show(null);
      });
      svg.addEventListener("dblclick", () => this.zoom(null));
      element.addEventListener("focusin", event => {  // an SVG that listens to this would get the focus itself
        this.focused = event.target.place ?? null;
        if (!this.focused) return;
        this.focused.node.parentNode.parentNode.stop = this.focused.number;
        if (event.target.matches(":focus-visible") && this.current?.row !== this.focused) this.step(0);
      });
      element.addEventListener("focusout", () => {
        this.focused = null;
        if (!this.pointer) this.show(null);
      });
      svg.addEventListener("keydown", event => {
        const key = KEYS[event.key];
        if (!key || !this.focused || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        this.pointer = null;
        key(this);
      });
      document.addEventListener("keydown", event => {
        if (event.key === "Escape") this.show(this.pointer = null);
      });
      document.addEventListener("pointerdown", event => {
        if (!element.contains(event.target)) this.show(null);
      });
    }

    step(by) {  // to another item of the row with the focus; 0 is the one that shows, or the first
      const items = this.items(this.focused);
      if (!items.length) return this.show(null);
      const was = this.current?.row === this.focused ? items.indexOf(this.current.item) : -1;
      this.reach(items[clamp(was < 0 ? 0 : was + by, 0, items.length - 1)]);
    }

    reach(item) {  // shows an item, and moves what is zoomed to where it begins if that is elsewhere
      const row = this.focused, [{from}] = item.bars, [first, last] = this.range;
      this.show({row, item});
      if (from >= first && from <= last) return;
      const long = last - first;
      this.zoom([from - long / 4, from + long * 3 / 4]);
    }

    go(by) {  // to another row, at about the same time
      const row = this.rows[this.rows.indexOf(this.focused) + by];
      if (!row) return;
      const from = this.current?.item.bars[0]?.from ?? this.range[0];
      this.focused.node.setAttribute("tabindex", this.focused.node.was.tabindex = -1);
      row.node.setAttribute("tabindex", row.node.was.tabindex = 0);
      this.current = null;
      row.node.focus();
      const items = this.items(row);
      const apart = item => Math.abs(item.bars[0].from - from);
      if (items.length) this.reach(items.reduce((best, item) => apart(item) < apart(best) ? item : best));
    }

    closer(times) {
      const [from, to] = this.range, middle = this.current?.item.bars[0]?.from ?? (from + to) / 2;
      this.zoom([middle - (middle - from) * times, middle + (to - middle) * times]);
    }

    open() {
      const id = this.current?.item.bars[0]?.opens;
      if (!id) return;
      if (location.hash === `#${id}`) dispatchEvent(new HashChangeEvent("hashchange"));
      else location.hash = id;
    }
  }

  const KEYS = {
    ArrowLeft: chart => chart.step(-1), ArrowRight: chart => chart.step(1),
    ArrowUp: chart => chart.go(-1), ArrowDown: chart => chart.go(1),
    Home: chart => chart.step(-Infinity), End: chart => chart.step(Infinity),
    "+": chart => chart.closer(.5), "=": chart => chart.closer(.5), "-": chart => chart.closer(2), 0: chart => chart.zoom(null),
    Enter: chart => chart.open(),
  };

  function draw(element, figure) {
    hatch();
    if (!charts.has(element)) charts.set(element, new Chart(element));
    const chart = charts.get(element);
    chart.figure = figure;
    chart.paint();
  }

  return {draw};
})();
