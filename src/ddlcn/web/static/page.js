// The page. In: pictures (dropped, chosen, pasted, from the camera). Out: a card for each.
"use strict";

const $ = (id) => document.getElementById(id);
const percent = (p) => `${(100 * p).toFixed(p < 0.01 ? 1 : 0)} %`;
const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(3);

function make(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

async function send(address, field, files) {
  const form = new FormData();
  for (const file of files) form.append(field, file, file.name || "picture");
  const response = await fetch(address, { method: "POST", body: form });
  const answer = await response.json().catch(() => ({ error: "the server's answer is not valid JSON" }));
  if (!response.ok) throw new Error(answer.error || "the server refused it");
  return answer;
}

async function ask(files) {
  files = [...files];
  if (!files.length) return;
  $("status").textContent = files.length === 1 ? "Looking …" : `Looking at ${files.length} pictures …`;
  let first = null;
  for (const file of files) {
    let answer;
    try {
      [answer] = await send(`/predict?top=5&reject=${$("reject").checked}`, "images", [file]);
    } catch (error) {
      answer = { name: file.name, error: error instanceof TypeError ? "the server does not answer" : error.message };
    }
    const card = show(file, answer);
    first = first || card;
  }
  $("status").textContent = files.length === 1 ? "Done." : `Done: ${files.length} pictures.`;
  first.focus();
}

function show(file, answer) {
  const card = $("card").content.firstElementChild.cloneNode(true);
  const part = (name) => card.querySelector(name);
  part(".name").textContent = answer.name || file.name;
  $("results").prepend(card);
  if (answer.error) {
    card.classList.add("failed");
    part(".see").remove();
    part(".label").textContent = "This picture cannot be read";
    part(".guesses").replaceWith(make("p", answer.error, { class: "error" }));
    return card;
  }
  const guess = answer.top[0];
  part(".label").textContent = answer.label === null ? `None of the classes (most like ${guess.label})` : answer.label;
  part(".shown").src = URL.createObjectURL(file);
  part(".shown").alt = `The picture ${file.name}`;
  for (const { label, probability } of answer.top) {
    const item = make("li");
    item.append(make("progress", "", { value: probability, max: 1, "aria-hidden": "true" }), make("span", label), make("span", percent(probability)));
    part(".guesses").append(item);
  }
  explain(file, card);
  return card;
}

async function explain(file, card) {
  const part = (name) => card.querySelector(name);
  const plain = part(".shown").src;
  let why;
  try {
    why = await send("/explain", "image", [file]);
  } catch {
    return; // the label is shown without it
  }
  const group = `shown-${Math.random().toString(36).slice(2)}`;
  const choices = [
    ...why.sides.map((side, i) => ({ name: i === 0 ? `why ${side.label}` : `why ${side.label}?`, side })),
    { name: "the picture", side: null },
  ];
  choices.forEach(({ name, side }, i) => {
    const input = make("input", "", { type: "radio", name: group, id: `${group}-${i}` });
    input.addEventListener("change", () => showSide(card, side, plain));
    part(".tabs").append(input, make("label", name, { for: input.id }));
    if (i === choices.length - 1) input.checked = true;
  });
  part(".tabs").dataset.ready = "true";
}

function showSide(card, side, plain) {
  const part = (name) => card.querySelector(name);
  part(".shown").src = side ? side.heat : plain;
  part(".shown").alt = side ? `Heat map: orange supports ${side.label}, blue counts against it` : "The picture";
  part(".more").hidden = !side;
  if (!side) return;
  part(".sum").textContent = `Decision value of ${side.label}: ${signed(side.score)} = ${signed(side.from_image)} from the picture ${signed(side.intercept)} constant. Orange supports it, blue counts against it.`;
  const near = side.atoms.some((atom) => atom.near.length);
  const heading = make("tr");
  for (const text of ["patch", "atom learned from", "contribution", ...(near ? ["nearest training patches"] : [])]) heading.append(make("th", text, { scope: "col" }));
  part("thead").replaceChildren(heading);
  part("tbody").replaceChildren(
    ...side.atoms.map((atom) => {
      const row = make("tr");
      const patch = make("td");
      if (atom.patch) patch.append(make("img", "", { src: atom.patch, alt: "a patch of the picture" }));
      row.append(patch, make("td", atom.learned_from === null ? "all classes" : atom.learned_from), make("td", signed(atom.contribution)));
      if (near) {
        const cell = make("td");
        for (const [address, label] of atom.near) cell.append(make("img", "", { src: address, alt: `of ${label}`, title: label }));
        row.append(cell);
      }
      return row;
    }),
  );
}

const drop = $("drop");
for (const name of ["dragenter", "dragover"]) document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
for (const name of ["dragleave", "drop"]) document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.remove("over"); });
document.addEventListener("drop", (event) => ask(event.dataTransfer.files));
document.addEventListener("paste", (event) => ask(event.clipboardData.files));
$("file").addEventListener("change", (event) => { ask(event.target.files); event.target.value = ""; });
$("ask").addEventListener("submit", (event) => event.preventDefault());

$("camera").addEventListener("click", async () => {
  try {
    $("video").srcObject = await navigator.mediaDevices.getUserMedia({ video: true });
    $("viewfinder").hidden = false;
    await $("video").play();
    $("shoot").focus();
  } catch {
    $("status").textContent = "The camera cannot be used here.";
  }
});
function closeCamera() {
  const stream = $("video").srcObject;
  if (stream) stream.getTracks().forEach((track) => track.stop());
  $("video").srcObject = null;
  $("viewfinder").hidden = true;
}
$("close").addEventListener("click", closeCamera);
$("shoot").addEventListener("click", () => {
  const canvas = document.createElement("canvas");
  canvas.width = $("video").videoWidth;
  canvas.height = $("video").videoHeight;
  canvas.getContext("2d").drawImage($("video"), 0, 0);
  closeCamera();
  canvas.toBlob((blob) => ask([new File([blob], "camera.jpg", { type: "image/jpeg" })]), "image/jpeg", 0.92);
});
