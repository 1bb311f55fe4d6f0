// The panel that shows one item of the time line: when, where, what belongs to it, and the bytes of a message.
import { el, time } from './dom.js'
import { failed } from './timeline.js'

export class ItemPanel {
  constructor(panel, timeline) {
    this.panel = panel
    this.timeline = timeline
    document.addEventListener('keydown', (event) => { if (event.key === 'Escape') this.close() })
  }

  // open shows an item and moves the focus into the panel, to the control of that name.
  open(item, focus = 'close') {
    this.id = item.id
    this.panel.replaceChildren(this.bar(item), el('h2', { id: 'item-name' }, item.name), this.facts(item),
      ...text('Request', item.request), ...text('Response', item.response))
    this.panel.hidden = false
    this.panel.scrollTop = 0
    this.timeline.markOpen(item.id)
    const control = this.panel.querySelector(`[data-do="${focus}"]`)
    ;(control?.disabled ? this.panel.querySelector('[data-do="close"]') : control).focus()
  }

  // close hides the panel; the focus goes back to the item.
  close() {
    if (this.panel.hidden) return
    this.hide()
    this.timeline.focus(this.id)
  }

  hide() {
    this.panel.hidden = true
    this.timeline.markOpen(null)
  }

  bar(item) {
    const step = (by, name, label) => {
      const other = this.timeline.neighbour(item.id, by)
      return el('button', { type: 'button', 'data-do': name, disabled: !other, onclick: () => this.move(other, name) }, label)
    }
    return el('div', { class: 'item-bar' }, step(-1, 'previous', 'Previous'), step(1, 'next', 'Next'),
      el('button', { type: 'button', 'data-do': 'close', onclick: () => this.close() }, 'Close'))
  }

  move(item, control) {
    this.timeline.rove(item)
    this.timeline.scrollTo(item)
    this.open(item, control)
  }

  facts(item) {
    const { timeline } = this
    const rows = [
      ['Kind', item.kind],
      ['Where', item.to ? `${timeline.label(item.lane)} → ${timeline.label(item.to)}` : timeline.label(item.lane)],
      item.group ? ['Of', item.group] : null,
      ['Outcome', failed(item) ? 'failed' : 'ok'],
      ['Begins', time(item.start_us)],
      item.end_us > item.start_us ? ['Takes', time(item.end_us - item.start_us)] : null,
      ...(item.detail ?? []).map((row) => [row.name, String(row.value)]),
    ]
    const list = el('dl', {}, ...rows.filter(Boolean).flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]))
    const parent = timeline.byID.get(item.parent)
    if (parent) {
      const open = el('button', { type: 'button', class: 'link', onclick: () => this.move(parent, 'close') }, parent.name)
      list.append(el('dt', {}, 'Part of'), el('dd', {}, open))
    }
    return list
  }
}

function text(title, bytes) {
  return bytes ? [el('h3', {}, title), el('pre', {}, bytes)] : []
}
