// Draws the charts of a page by uPlot. The data are in the element "data"; see tools/run_page/charts.py.
(() => {
  "use strict";
  for (const log of document.querySelectorAll("pre.end")) log.scrollTop = log.scrollHeight; // its last lines say why
  reachable();
  addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);
  // A box that scrolls can be reached by keyboard, and then be scrolled by its arrows.
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
  const COLOURS = ["#2f9e77", "#8e63ce", "#3d8fd1", "#b5752b", "#5d9c32", "#c25596", "#4f7f8f", "#8a8a2e"];
  const OUTLIERS = ["#d2483f", "#e8833a", "#c2255c", "#b08900"];
  const HEIGHT = 240;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const shown = (value) => (value == null ? "–" : String(Number(value.toPrecision(5))));
  const value = (_, number) => shown(number);

  // The series of a chart and their data: the band of all ranks first, so that it lies below, their middle last.
  function seriesOf(chart) {
    const series = [{ label: words.step, value: (_, step) => (step == null ? "–" : String(step)) }];
    const data = [chart.x];
    const bands = [];
    const points = { show: chart.x.length < 30 };
    if (chart.band) {
      const [low, , high] = chart.band;
      const edge = { stroke: colour("--band"), width: 0, points: { show: false }, value };
      series.push({ ...edge, label: words.low }, { ...edge, label: words.high });
      data.push(low, high);
      bands.push({ series: [2, 1], fill: colour("--band") });
    }
    let plain = 0;
    let apart = 0;
    for (const line of chart.lines) {
      const stroke = line.out ? OUTLIERS[apart++ % OUTLIERS.length] : COLOURS[plain++ % COLOURS.length];
      const width = line.out || !chart.band ? 1.5 : 1;
      series.push({ label: line.label, stroke, width, points, value, spanGaps: true });
      data.push(line.y);
    }
    if (chart.band) {
      series.push({ label: words.middle, stroke: colour("--middle"), width: 2, points, value, spanGaps: true });
      data.push(chart.band[1]);
    }
    return { series, data, bands };
  }

  function draw(element, chart) {
    const { series, data, bands } = seriesOf(chart);
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const options = {
      width: element.clientWidth,
      height: HEIGHT,
      series,
      bands,
      axes: [
        { ...axis, size: 32, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7] },
        { ...axis, size: 58, values: (_, splits) => splits.map(shown) },
      ],
      scales: { x: { time: false } },
      cursor: { sync: { key: "run" }, focus: { prox: 24 } },
      focus: { alpha: 0.35 },
    };
    return new uPlot(options, data, element);
  }

  const elements = [...document.querySelectorAll("[data-chart]")];
  let plots = [];
  function drawAll() {
    for (const plot of plots) plot.destroy();
    plots = elements.map((element) => draw(element, charts[Number(element.dataset.chart)]));
  }
  drawAll();
  dark.addEventListener("change", drawAll);
  addEventListener("resize", () => {
    for (const [place, plot] of plots.entries()) plot.setSize({ width: elements[place].clientWidth, height: HEIGHT });
  });
})();
