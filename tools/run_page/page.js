// Draws the charts of a page with uPlot. The element "data" has the data; see tools/run_page/figures.py.
(() => {
  "use strict";
  for (const log of document.querySelectorAll("pre.end")) log.scrollTop = log.scrollHeight; // the last lines show why
  reachable();
  addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);
  // Boxes that scroll take the keyboard focus, so that the arrow keys scroll them.
  function reachable() {
    for (const box of document.querySelectorAll(".wide, pre")) {
      const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
      if (scrolls) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }
  const source = document.getElementById("data");
  if (!source) return;
  const { words, charts } = JSON.parse(source.textContent);
  const elements = [...document.querySelectorAll("[data-chart]")];
  const hidden = new Set(); // keys of lines
  let by = "step"; // or "time"
  let paper = false; // the page is being printed
  let plots = [];

  // ---- numbers ------------------------------------------------------------------------------------------------------

  const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const withUnit = (text, unit) => (unit === "" || unit.startsWith("/") ? text + unit : `${text} ${unit}`);

  function shown(value, unit) {
    if (value == null) return "–";
    if (unit === "ms" && Math.abs(value) >= 1000) return shown(value / 1000, "s");
    const size = Math.abs(value);
    const small = size > 0 && size < 1e-4;
    return withUnit(small ? value.toExponential(2) : size >= 1000 ? whole.format(value) : digits.format(value), unit);
  }

  // The labels of a vertical axis, all with the same unit and enough digits to differ.
  function ticks(splits, step, unit) {
    const large = unit === "ms" && splits.some((value) => Math.abs(value) >= 1000);
    const factor = large ? 1000 : 1;
    const places = (String(Number((step / factor).toPrecision(3))).split(".")[1] || "").length;
    const format = new Intl.NumberFormat("en", { minimumFractionDigits: places, maximumFractionDigits: places });
    const fine = step / factor < 1e-4;
    const text = (value) => (fine ? value.toExponential(1) : format.format(value));
    return splits.map((value) => (value == null ? "" : withUnit(text(value / factor), large ? "s" : unit)));
  }

  function clock(seconds) {
    const all = Math.round(seconds);
    const [hours, minutes] = [Math.floor(all / 3600), Math.floor(all / 60) % 60];
    const two = (number) => String(number).padStart(2, "0");
    if (hours) return `${hours}:${two(minutes)}:${two(all % 60)}`;
    return all >= 120 ? `${minutes}:${two(all % 60)}` : `${Number(seconds.toFixed(1))} s`;
  }

  const place = (x) => (by === "time" ? clock(x) : whole.format(x));

  // ---- colours and sizes --------------------------------------------------------------------------------------------

  // On paper the colours of the light mode: when the page learns that it is printed, its style may still be the dark one.
  const light = [...document.styleSheets[0].cssRules].find((rule) => rule.selectorText === ":root").style;
  const styles = () => (paper ? light : getComputedStyle(document.documentElement));
  const colour = (name) => styles().getPropertyValue(name).trim();
  const OTHERS = { median: "--middle", plain: "--soft" };
  const colourOf = (style) => colour(OTHERS[style] || `--${style}`);
  const font = (size) => `${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans CJK SC", sans-serif`;
  const LEFT = 62; // width of the labels on the left: the same in all charts, like the space on the right
  const ROW = 14; // distance of two names on the right

  function size(element) {
    if (paper) return { width: 310, height: 170 };
    return { width: element.clientWidth, height: element.clientWidth < 420 ? 200 : 230 };
  }

  const pen = document.createElement("canvas").getContext("2d");
  function cut(text, most) {
    pen.font = font(12);
    if (pen.measureText(text).width <= most) return text;
    // Leave out the middle: names of runs differ at their ends.
    const fits = (length) => `${text.slice(0, Math.floor(length / 2))}…${text.slice(text.length - Math.ceil(length / 2))}`;
    let { length } = text;
    while (length > 2 && pen.measureText(fits(length)).width > most) length -= 1;
    return fits(length);
  }
  function right() {
    const most = Math.min(170, 0.3 * size(elements[0]).width);
    pen.font = font(12);
    const names = charts.flatMap((chart) => chart.lines.map((line) => line.label));
    return Math.ceil(Math.min(most, Math.max(...names.map((name) => pen.measureText(name).width)))) + 16;
  }

  // ---- data ---------------------------------------------------------------------------------------------------------

  // uPlot draws through undefined, where a line has no value; null is a gap, where it has nan or inf.
  function column(values, bad) {
    const gaps = new Set(bad || []);
    return values.map((value, at) => (value == null ? (gaps.has(at) ? null : undefined) : value));
  }

  // The rows of a chart in drawing order: the background first, the most important last.
  function rowsOf(chart) {
    const rows = [];
    if (chart.band) {
      rows.push({ key: "band", part: "low", y: column(chart.band[0]) });
      rows.push({ key: "band", part: "high", y: column(chart.band[1]) });
    }
    const behind = [...chart.lines].reverse();
    for (const line of behind) {
      if (line.raw && !line.thin) rows.push({ key: line.key, part: "raw", line, y: column(line.raw, line.bad) });
    }
    for (const line of behind.filter((one) => one.thin)) rows.push({ key: line.key, part: "line", line, y: column(line.y, line.bad) });
    for (const line of behind.filter((one) => !one.thin)) rows.push({ key: line.key, part: "line", line, y: column(line.y, line.bad) });
    return rows;
  }

  // [x, a column of each row]; by time every line has its own x.
  function tableOf(chart, rows) {
    if (by === "step") return [chart.x, ...rows.map((row) => row.y)];
    return uPlot.join(
      rows.map((row) => {
        const there = chart.x.map((_, at) => at).filter((at) => row.y[at] !== undefined);
        const last = new Map(there.map((at) => [row.line.t[at], row.y[at]])); // the later of two values at the same time
        return [[...last.keys()], [...last.values()]];
      }),
    );
  }

  let span = [0, 1]; // of all charts
  let view = span; // the visible part
  function widest(tables) {
    const first = Math.min(...tables.map(([x]) => x[0]));
    const last = Math.max(...tables.map(([x]) => x[x.length - 1]));
    return first === last ? [first - 1, last + 1] : [first, last];
  }

  // ---- drawing ------------------------------------------------------------------------------------------------------

  function seriesOf(chart, rows) {
    const band = { stroke: "transparent", width: 0, points: { show: false } };
    return rows.map(({ key, part, line }) => {
      const show = !hidden.has(key);
      if (key === "band") return { ...band, show };
      const stroke = colourOf(line.style);
      if (part === "raw") return { show, stroke: `${stroke}4d`, width: 1, points: { show: false } };
      const points = { show: chart.points !== "" && !line.thin, size: chart.points === "only" ? 9 : 5, fill: stroke };
      const width = line.thin ? 1 : 2;
      const series = { show, stroke, width, points, dash: line.dashed ? [6, 4] : undefined };
      return chart.points === "only" ? { ...series, paths: () => null } : series;
    });
  }

  // The vertical axis: from 0 if that costs little space; a flat line with small jumps stays flat.
  function bounds(chart) {
    return (_, low, high) => {
      if (low == null || !Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
      const top = chart.top == null ? high : Math.min(high, chart.top);
      let [from, to] = [Math.min(low, top), top];
      if (from >= 0 && from < 0.4 * to) from = 0;
      const least = chart.calm ? 0.25 * Math.abs(to) : 0.002 * Math.abs(to) || 1;
      if (to - from < least) {
        const more = (least - (to - from)) / 2;
        [from, to] = [from >= 0 ? Math.max(0, from - more) : from - more, to + more];
      }
      const air = 0.06 * (to - from);
      const most = chart.unit === "%" && high <= 100 ? 100 + air / 2 : Infinity;
      return [from === 0 ? 0 : from - air, Math.min(most, to + air)];
    };
  }

  // The names at the ends of lines, as close as the other names allow, with a leader to a line that ends early.
  function names(plot, rows) {
    const ratio = devicePixelRatio;
    const { left, top, width, height } = plot.bbox;
    const found = [];
    rows.forEach((row, number) => {
      if (row.part !== "line" || hidden.has(row.key)) return;
      const [first, last] = plot.series[0].idxs;
      let at = last;
      while (at >= first && plot.data[number + 1][at] == null) at -= 1;
      if (at < first) return;
      const y = plot.valToPos(plot.data[number + 1][at], "y", true);
      const x = plot.valToPos(plot.data[0][at], "x", true);
      const inside = Math.min(top + height, Math.max(top, y));
      found.push({ row, x: Math.min(left + width, x), from: inside, y: inside });
    });
    const most = Math.max(1, Math.floor(height / (ROW * ratio)) + 1);
    found.splice(0, Math.max(0, found.length - most)); // those in the background; the legend names them
    found.sort((one, other) => one.y - other.y);
    const low = top + height;
    found.forEach((one, at) => {
      if (at) one.y = Math.max(one.y, found[at - 1].y + ROW * ratio);
    });
    for (let at = found.length - 1, limit = low; at >= 0; at -= 1, limit -= ROW * ratio) {
      found[at].y = Math.min(found[at].y, limit);
    }
    const space = right() - 12;
    const { ctx } = plot;
    ctx.save();
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const one of found) {
      const stroke = colourOf(one.row.line.style);
      ctx.font = font(12 * ratio);
      ctx.fillStyle = stroke;
      ctx.strokeStyle = stroke;
      ctx.lineWidth = ratio;
      ctx.globalAlpha = 0.5;
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(one.x, one.from);
      ctx.lineTo(left + width, one.from);
      ctx.lineTo(left + width + 6 * ratio, one.y);
      ctx.stroke();
      ctx.globalAlpha = 1;
      ctx.fillText(cut(one.row.line.label, space), left + width + 9 * ratio, one.y);
    }
    ctx.restore();
  }

  // Marks the start of each attempt, and puts crosses where values are not finite.
  function marks(plot, rows) {
    const ratio = devicePixelRatio;
    const { ctx } = plot;
    const { left, top, width, height } = plot.bbox;
    ctx.save();
    ctx.font = font(11 * ratio);
    ctx.lineWidth = ratio;
    ctx.fillStyle = ctx.strokeStyle = colour("--soft");
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    let free = left;
    for (const [step, name, short] of by === "step" ? words.restart : []) {
      const x = Math.round(plot.valToPos(step, "x", true)) + 0.5; // sharp
      if (x < left || x > left + width) continue;
      ctx.setLineDash([4 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      const text = [name, short].find((one) => x >= free && x + 4 * ratio + ctx.measureText(one).width < left + width);
      if (!text) continue;
      ctx.fillText(text, x + 4 * ratio, top + 2 * ratio);
      free = x + 8 * ratio + ctx.measureText(text).width;
    }
    ctx.setLineDash([]);
    ctx.lineWidth = 2 * ratio;
    rows.forEach((row, number) => {
      if (row.part !== "line" || hidden.has(row.key)) return;
      ctx.strokeStyle = colourOf(row.line.style);
      for (const at of row.line.bad || []) cross(plot, by === "time" ? row.line.t[at] : plot.data[0][at], number);
    });
    ctx.textBaseline = "alphabetic";
    ctx.textAlign = "right";
    ctx.fillText(by === "time" ? words.time : words.step, left - 22 * ratio, top + height + 18 * ratio);
    ctx.restore();
  }
  function cross(plot, at) {
    const [x, y, arm] = [plot.valToPos(at, "x", true), plot.bbox.top + plot.bbox.height - 8 * devicePixelRatio, 4 * devicePixelRatio];
    if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) return;
    plot.ctx.beginPath();
    plot.ctx.moveTo(x - arm, y - arm);
    plot.ctx.lineTo(x + arm, y + arm);
    plot.ctx.moveTo(x - arm, y + arm);
    plot.ctx.lineTo(x + arm, y - arm);
    plot.ctx.stroke();
  }

  // Writes the values at the pointer, or the last ones, above the chart.
  function readout(plot, chart, rows, element) {
    const { idx } = plot.cursor;
    const x = plot.data[0];
    const at = idx == null ? x.length - 1 : idx;
    const parts = [[`${by === "time" ? words.time : words.step} ${place(x[at])}`, ""]];
    const value = (number) => {
      const values = plot.data[number + 1];
      if (values[at] !== undefined) return values[at] === null ? words.bad : shown(values[at], chart.unit);
      let [before, after] = [at, at];
      while (before >= 0 && values[before] === undefined) before -= 1;
      while (after < values.length && values[after] === undefined) after += 1;
      return after < values.length && before >= 0 ? shown(values[before], chart.unit) : "–";
    };
    for (let number = rows.length - 1; number >= 0; number -= 1) {
      const { key, part, line } = rows[number];
      if (part === "line" && !hidden.has(key)) parts.push([`${line.label}: ${value(number)}`, line.style]);
    }
    if (chart.band && !hidden.has("band")) parts.push([`${words.band}: ${value(0)} – ${value(1)}`, ""]);
    const spans = parts.map(([text, style]) => {
      const span = document.createElement("span");
      span.textContent = text;
      if (style) span.className = `name ${style}`;
      return span;
    });
    element.parentElement.querySelector(".at").replaceChildren(...spans);
  }

  let zooming = false;
  function zoom(to) {
    if (zooming) return;
    zooming = true;
    view = to;
    for (const plot of plots) plot.setScale("x", { min: to[0], max: to[1] });
    zooming = false;
  }

  const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7];
  const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400];

  function draw(element, chart, rows, table) {
    const axis = { stroke: colour("--soft"), font: font(12), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const whenDrawn = (plot) => {
      marks(plot, rows);
      names(plot, rows);
    };
    const options = {
      ...size(element),
      padding: [8, right(), 0, 0],
      series: [{}, ...seriesOf(chart, rows)],
      bands: chart.band ? [{ series: [2, 1], fill: colour("--band") }] : [],
      axes: [
        { ...axis, size: 30, incrs: by === "time" ? SECONDS : STEPS, values: (_, splits) => splits.map(place) },
        { ...axis, size: LEFT, values: (_, splits, __, ___, step) => ticks(splits, step, chart.unit) },
      ],
      scales: { x: { time: false, min: view[0], max: view[1] }, y: { range: bounds(chart) } },
      legend: { show: false },
      cursor: {
        sync: { key: "run" },
        points: { size: 7 },
        drag: { x: true, y: false },
        bind: { dblclick: () => () => zoom(span) },
      },
      hooks: {
        draw: [whenDrawn],
        setCursor: [(plot) => readout(plot, chart, rows, element)],
        setScale: [(plot, key) => key === "x" && plots.includes(plot) && zoom([plot.scales.x.min, plot.scales.x.max])],
      },
    };
    const plot = new uPlot(options, table, element);
    readout(plot, chart, rows, element);
    const colours = rows.map(({ line, part }, at) => part === "line" && [line.label, plot.series[at + 1].stroke(plot, at + 1)]);
    element.dataset.drawn = JSON.stringify(Object.fromEntries(colours.filter(Boolean))); // nothing else can read them from a canvas
    return plot;
  }

  function drawAll() {
    for (const plot of plots) plot.destroy();
    plots = [];
    const rows = charts.map(rowsOf);
    const tables = charts.map((chart, number) => tableOf(chart, rows[number]));
    const all = view[0] === span[0] && view[1] === span[1];
    span = widest(tables);
    if (all) view = span;
    plots = elements.map((element, at) => draw(element, charts[at], rows[at], tables[at]));
  }
  drawAll();

  // ---- user input -----------------------------------------------------------------------------------------------

  for (const button of document.querySelectorAll("[data-key]")) {
    button.addEventListener("click", () => {
      const { key } = button.dataset;
      if (!hidden.delete(key)) hidden.add(key);
      button.setAttribute("aria-pressed", String(!hidden.has(key)));
      drawAll();
    });
  }
  const ways = [...document.querySelectorAll("[data-by]")];
  for (const button of ways) {
    button.addEventListener("click", () => {
      by = button.dataset.by;
      view = span;
      for (const one of ways) one.setAttribute("aria-pressed", String(one === button));
      drawAll();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("resize", () => {
    if (!paper) for (const [at, plot] of plots.entries()) plot.setSize(size(elements[at]));
  });
  for (const [event, on] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => {
      paper = on;
      drawAll();
    });
  }
})();
