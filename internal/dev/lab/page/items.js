// What the items of a run are, and what they are to one another. No element is touched here.

export function failed(item) {
  return item.ok === false
}

// isExchange tells whether a message is a request with its answer, not something that is only handed on.
export function isExchange(item) {
  return Boolean(item.request || item.response)
}

// title is what a bar shows: of a message also whose it is, or that it waits to be taken.
export function title(item) {
  if (item.kind !== 'message') return item.name
  if (!isExchange(item)) return `waits: ${item.name}`
  return item.group ? `${item.group}: ${item.name}` : item.name
}

// pair finds what each message caused in the lane that it went to: what has the message as its parent, or began when the
// message arrived. It returns a Map from the message's id to the item.
export function pair(items, byID) {
  const caused = new Map()
  const beginnings = new Map()
  for (const item of items) {
    beginnings.set(`${item.lane} ${item.start_us}`, item)
    if (byID.get(item.parent)?.to === item.lane && !caused.has(item.parent)) caused.set(item.parent, item)
  }
  for (const item of items) {
    if (item.kind !== 'message' || isExchange(item) || caused.has(item.id)) continue
    const arrived = beginnings.get(`${item.to} ${item.end_us}`)
    if (arrived) caused.set(item.id, arrived)
  }
  return caused
}

// next is the item that a key leads to: along the lane, or in a lane above or below. There it is what caused the item or was
// caused by it, else the nearest in time.
export function next(lanes, byID, item, key) {
  const at = lanes.findIndex((lane) => lane.id === item.lane)
  const { items } = lanes[at]
  const along = { ArrowLeft: items.indexOf(item) - 1, ArrowRight: items.indexOf(item) + 1, Home: 0, End: items.length - 1 }[key]
  if (along !== undefined) return items[along]
  const others = { ArrowUp: lanes.slice(0, at).reverse(), ArrowDown: lanes.slice(at + 1) }[key] ?? []
  const causes = causesOf(byID, item)
  for (const lane of others) {
    const related = lane.items.find((other) => causes.has(other.id) || causesOf(byID, other).has(item.id))
    if (related) return related
  }
  const distance = (other) => Math.abs(other.start_us - item.start_us)
  const lane = others.find((other) => other.items.length > 0)
  return lane?.items.reduce((best, other) => (distance(other) < distance(best) ? other : best))
}

// causesOf are the ids of what an item is part of, directly or not.
function causesOf(byID, item) {
  const ids = new Set()
  for (let id = item.parent; byID.has(id) && !ids.has(id); id = byID.get(id).parent) ids.add(id)
  return ids
}
