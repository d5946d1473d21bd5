const [box, order] = document.querySelectorAll("#search input, #search select");
const list = document.querySelector("#tenants");
const tenants = list ? [...list.children] : [];
const given = new URLSearchParams(location.hash.slice(1));
document.querySelector("#search").hidden = false;
const look = () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const holds = (part) => words.every((word) => part.textContent.toLowerCase().includes(word));
  for (const part of document.querySelectorAll(".find")) {
    const whole = part.matches(".tenant") && words.every((word) => part.dataset.name.includes(word));
    for (const row of part.querySelectorAll("tbody tr")) row.hidden = !whole && words.length > 0 && !holds(row);
    part.hidden = words.length > 0 && !whole && !holds(part);
    if (words.length > 0 && part.tagName === "DETAILS") part.open = !part.hidden;
  }
  const shown = tenants.filter((each) => !each.hidden).length;
  document.querySelector("#shown").textContent = words.length > 0 ? `${shown} of ${tenants.length} tenants` : "";
};
const sort = () => {
  const key = order.value;
  const most = (a, b) => Number(b.dataset[key]) - Number(a.dataset[key]);
  const named = (a, b) => (a.dataset.name < b.dataset.name ? -1 : 1);
  list?.append(...tenants.sort((a, b) => (key === "name" ? 0 : most(a, b)) || named(a, b)));
};
const open = () => {
  const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (row?.tagName === "DETAILS") row.open = true;
};
box.addEventListener("input", look);
order.addEventListener("change", sort);
addEventListener("hashchange", open);
if (given.has("sort")) order.value = given.get("sort");
if (given.has("q")) box.value = given.get("q");
sort();
look();
open();
