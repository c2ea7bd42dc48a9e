// muarl view: keys to move by, and a page that follows a run while it goes on. Everything works without it.
"use strict";
(() => {
  const rows = () => [...document.querySelectorAll("main table.list tbody tr")].filter((row) => row.querySelector("a"));
  let at = -1;
  const select = (n) => {
    const all = rows();
    if (!all.length) return false;
    all[at]?.classList.remove("chosen");
    at = Math.max(0, Math.min(all.length - 1, n));
    all[at].classList.add("chosen");
    (all[at].querySelector("a.open") || all[at].querySelector("th a, a")).focus({ preventScroll: true });
    all[at].scrollIntoView({ block: "nearest" });
    return true;
  };
  const follow = (selector) => {
    const link = document.querySelector(selector);
    if (link) link.click();
    return Boolean(link);
  };
  const views = { o: 0, e: 1, t: 2 };
  let going = false;
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.closest("input, select, textarea")) {
      if (key === "Escape") target.blur();
      return;
    }
    let done = true;
    if (going && key in views) document.querySelectorAll("header .to")[views[key]]?.click();
    else if (key === "j") done = select(at + 1) || follow("a[rel=next]");
    else if (key === "k") done = select(at - 1) || follow("a[rel=prev]");
    else if (key === "n") done = follow("a[rel=next]");
    else if (key === "p") done = follow("a[rel=prev]");
    else if (key === "u") done = follow("a[rel=up]") || (history.back(), true);
    else if (key === "/") document.querySelector("form.filter select, form.filter input")?.focus();
    else done = false;
    going = key === "g";
    if (done) event.preventDefault();
  });

  // Choosing from a list shows the result at once; typed words wait for Enter.
  document.addEventListener("change", (event) => {
    if (event.target.matches("form.filter select")) event.target.form.requestSubmit();
  });
  // Empty fields stay out of addresses.
  document.addEventListener("submit", (event) => {
    for (const field of event.target.elements) if (field.name && !field.value) field.disabled = true;
  });
  window.addEventListener("pageshow", () => {
    for (const field of document.querySelectorAll("form.filter :disabled")) field.disabled = false;
  });

  // While a run goes on, the page is fetched again; what a reader has opened or is reading stays.
  const busy = () => document.hidden || document.activeElement?.closest("form, table") || String(getSelection());
  const refresh = async () => {
    if (!document.body.dataset.live) return;
    if (!busy()) {
      try {
        const answer = await fetch(location.href, { credentials: "same-origin" });
        if (answer.ok) {
          const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
          const main = document.querySelector("main");
          const open = [...main.querySelectorAll("details")].map((fold) => fold.open);
          const made = document.adoptNode(fresh.querySelector("main"));
          const folds = [...made.querySelectorAll("details")];
          if (folds.length === open.length) folds.forEach((fold, n) => (fold.open = open[n]));
          if (made.innerHTML !== main.innerHTML) main.replaceWith(made);
          document.querySelector(".state")?.replaceWith(document.adoptNode(fresh.querySelector(".state")));
          document.body.dataset.live = fresh.body.dataset.live || "";
        }
      } catch {
        // The server has gone; the page stays as it is.
      }
    }
    setTimeout(refresh, 4000);
  };
  setTimeout(refresh, 4000);
})();
