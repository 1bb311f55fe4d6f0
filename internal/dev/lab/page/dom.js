// Small helpers to make elements and to write numbers. All text goes through textContent, so none is read as HTML.

// el makes an element. Attributes that are null or false are left out; on* are event listeners.
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children)
}

// svg makes an SVG element in the same way.
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children)
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value)
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value)
  }
  node.append(...children.filter((child) => child !== null))
  return node
}

// time writes microseconds with three digits, in the unit that suits them.
export function time(us) {
  if (us < 1000) return `${us} µs`
  if (us < 1_000_000) return `${digits(us / 1000)} ms`
  return `${digits(us / 1_000_000)} s`
}

function digits(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

// count writes a number with its noun: 1 check, 2 checks.
export function count(n, noun) {
  return `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`
}
