"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const press = (buttons, chosen) => buttons.forEach((button) => button.setAttribute("aria-pressed", button === chosen));

  // --- colours: as the system, or as chosen ---
  const themes = all(".theme button");
  const stored = () => { try { return localStorage.getItem("truestep-theme"); } catch { return null; } };
  const choose = (theme) => {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    press(themes, themes.find((button) => button.dataset.theme === theme));
  };
  themes.forEach((button) => button.addEventListener("click", () => {
    choose(button.dataset.theme);
    try { localStorage.setItem("truestep-theme", button.dataset.theme); } catch { /* a page without storage */ }
  }));
  if (["light", "dark"].includes(stored())) choose(stored());

  // --- a run that goes on: load the page again, with the same parts open and at the same place ---
  const parts = () => Object.fromEntries(all("section").map((one) => [one.id, all("details", one).map((part) => part.open)]));
  const taken = () => {
    try {
      const text = sessionStorage.getItem("truestep-parts");
      sessionStorage.removeItem("truestep-parts");
      return JSON.parse(text);
    } catch { return null; }
  };
  const before = taken();
  if (before && before.path === location.pathname) {
    for (const [id, open] of Object.entries(before.parts)) {
      const section = document.getElementById(id);
      if (section) all("details", section).slice(0, open.length).forEach((one, place) => { one.open = open[place]; });
    }
    scrollTo({ top: before.top, behavior: "instant" });
  }
  if (root.dataset.reload) setTimeout(() => {
    const now = { path: location.pathname, parts: parts(), top: scrollY };
    try { sessionStorage.setItem("truestep-parts", JSON.stringify(now)); } catch { /* a page without storage */ }
    location.reload();
  }, 1000 * root.dataset.reload);

  // --- a link into a closed part opens it ---
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let place = target; place; place = place.parentElement) if (place.tagName === "DETAILS") place.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (!before) reveal();

  // --- explanations of all lines ---
  all("button.duties").forEach((button) => button.addEventListener("click", () => {
    const open = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", open);
    all("details.duty").forEach((one) => { one.open = open; });
  }));

  // --- rules: search and outcome ---
  all(".filter").forEach((filter) => {
    const rows = all("tbody tr", document.getElementById(filter.dataset.table));
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const input = filter.querySelector("input");
    const buttons = all("button", filter);
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const chosen = buttons.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.dataset.outcome);
      let count = 0;
      rows.forEach((row, place) => {
        const fits = words.every((word) => texts[place].includes(word));
        row.hidden = !(fits && (!chosen.length || chosen.includes(row.dataset.outcome)));
        count += !row.hidden;
      });
      filter.querySelector(".count").textContent = count;
    };
    input.addEventListener("input", apply);
    buttons.forEach((button) => button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
      apply();
    }));
  });

  // --- charts: axis of the steps, and the values under the pointer or the arrow keys ---
  let logarithmic = false;
  const scales = all("button[data-scale]");
  scales.forEach((button) => button.addEventListener("click", () => {
    logarithmic = button.dataset.scale === "log";
    root.classList.toggle("log-steps", logarithmic);
    press(scales, button);
    all(".tip").forEach((tip) => { tip.hidden = true; });
    all(".cursor").forEach((cursor) => cursor.setAttribute("d", ""));
  }));
  all(".chart").forEach((chart) => {
    const lines = JSON.parse(chart.querySelector("script").textContent);
    const labels = all(".key", chart).map((key) => key.textContent);
    const steps = Number(chart.dataset.steps);
    const plot = chart.querySelector(".plot");
    const area = chart.querySelector(".area");
    const tip = chart.querySelector(".tip");
    const cursor = chart.querySelector(".cursor");
    const known = [...new Set(lines.flat().map((point) => point[0]))].sort((a, b) => a - b);
    const share = (step) => logarithmic ? Math.log10(step + 1) / Math.log10(steps + 1) : step / steps;
    let at = -1;
    const show = (place) => {
      at = Math.max(0, Math.min(known.length - 1, place));
      const step = known[at];
      const x = share(step);
      const texts = lines.map((points, number) => {
        const before = points.filter((point) => point[0] <= step).pop();
        return before ? `${labels[number]}: ${Number(before[1].toPrecision(4))}` : "";
      });
      tip.textContent = [`step ${step.toLocaleString("en")}`, ...texts.filter(Boolean)].join("\n");
      tip.style.left = `${100 * x}%`;
      tip.classList.toggle("left", x > 0.55);
      tip.hidden = false;
      cursor.setAttribute("d", `M${1000 * x} 0V1000`);
    };
    const hide = () => { at = -1; tip.hidden = true; cursor.setAttribute("d", ""); };
    area.addEventListener("pointermove", (event) => {
      const box = area.getBoundingClientRect();
      const wanted = (event.clientX - box.left) / box.width;
      let best = 0;
      known.forEach((step, place) => { if (Math.abs(share(step) - wanted) < Math.abs(share(known[best]) - wanted)) best = place; });
      show(best);
    });
    area.addEventListener("pointerleave", hide);
    plot.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1, Home: -known.length, End: known.length }[event.key];
      if (by) { show(at + by); event.preventDefault(); }
      if (event.key === "Escape") hide();
    });
    plot.addEventListener("blur", hide);
  });

  // --- paper has no parts to open ---
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open]):not(.manual):not(.duty):not(.fold):not(.chart > *)");
    opened.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
})();
