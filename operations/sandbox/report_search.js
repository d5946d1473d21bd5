const box = document.querySelector("#search input");
document.querySelector("#search").hidden = false;
const look = () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const holds = (part) => words.every((word) => part.textContent.toLowerCase().includes(word));
  for (const part of document.querySelectorAll(".find")) {
    const rows = part.querySelectorAll("tbody tr");
    const whole = part.matches(".tenant") && words.every((word) => part.dataset.name.includes(word));
    for (const row of rows) row.hidden = !whole && words.length > 0 && !holds(row);
    part.hidden = words.length > 0 && !whole && !holds(part);
    if (words.length > 0 && part.tagName === "DETAILS") part.open = !part.hidden;
  }
};
box.addEventListener("input", look);
if (location.hash.startsWith("#q=")) {
  box.value = decodeURIComponent(location.hash.slice(3));
  look();
}
