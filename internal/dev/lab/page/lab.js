// The lab's page: choose a scenario, run it, and look at what happened. The address names the scenario, its knobs and
// the run: #scenario=duplicates&duplicates=20&run=7.
import { busy, fetchRun, fetchScenarios, startRun } from './backend.js'
import { count, el, time } from './dom.js'
import { ItemPanel } from './item.js'
import { Timeline } from './timeline.js'

const pollEvery = 300 // milliseconds
const keys = 'Filled: at work. Hollow: waiting for an answer. Keys: ← → along a lane, ↑ ↓ between lanes, Enter opens, + − 0 zoom.'
const $ = (id) => document.getElementById(id)

let scenarios = []
let scenario = null
let following = null // the id of the run that is polled
const runs = new Map() // scenario id → the run of it that was seen last

const timeline = new Timeline($('plot'), { open: (item) => panel.open(item), hint: showHint })
const panel = new ItemPanel($('item'), timeline)

function showHint(item) {
  $('hint').textContent = item ? timeline.describe(item) : keys
}

// The state line, and the button that repeats what went wrong.

function showState(kind, text, again = null) {
  $('state').className = kind
  if ($('state').textContent !== text) $('state').textContent = text // a screen reader reads out every change
  $('elapsed').textContent = ''
  $('again').hidden = !again
  $('again').onclick = again
}

function stateOf(run) {
  if (run.state === 'running') return 'Running'
  const wrong = run.checks.filter((check) => !check.ok).length
  if (run.state === 'passed') return `Passed ${count(run.checks.length, 'check')} in ${time(run.took_us)}`
  return wrong > 0 ? `Failed ${wrong} of ${count(run.checks.length, 'check')}` : 'Failed before its checks'
}

// The scenarios.

async function load() {
  showState('', 'Loading')
  try {
    scenarios = await fetchScenarios()
  } catch (error) {
    showState('failed', error.message, load)
    return
  }
  showState('', '')
  showList()
  follow()
}

function showList() {
  $('list').replaceChildren(...scenarios.map((s) => {
    const run = runs.get(s.id)
    const state = run ? el('span', { class: `last ${run.state}` }, run.state) : null
    return el('li', {}, el('a', { href: `#scenario=${encodeURIComponent(s.id)}`, 'aria-current': s.id === scenario?.id && 'true' }, s.title, state))
  }))
}

function address() {
  return new URLSearchParams(location.hash.slice(1))
}

// follow goes where the address says.
async function follow() {
  const wanted = address().get('scenario')
  const found = scenarios.find((s) => s.id === wanted) ?? scenarios[0]
  if (!found) return showState('', 'There are no scenarios.')
  const moved = found !== scenario
  scenario = found
  if (moved) showScenario()
  const id = address().get('run')
  if (id && id !== runs.get(scenario.id)?.id) await watch(id)
}

function showScenario() {
  document.title = `${scenario.title} · Orders lab`
  $('title').textContent = scenario.title
  $('promise').textContent = scenario.promise
  $('fields').replaceChildren(...scenario.knobs.map(field))
  $('rules').replaceChildren(...scenario.rules.map((rule) => el('li', {}, el('code', {}, rule.id), el('p', {}, rule.text))))
  $('links').replaceChildren(...scenario.links.filter(safe).map((link) =>
    el('li', {}, el('a', { href: link.href, target: '_blank', rel: 'noopener' }, link.label))))
  showList()
  panel.hide()
  const run = runs.get(scenario.id)
  if (run) showRun(run)
  else showNothing()
  if (narrow.matches) $('scenarios').firstElementChild.open = false
}

// safe refuses addresses that are no pages, such as javascript:.
function safe(link) {
  return /^https?:$/.test(URL.parse(link.href, location.href)?.protocol ?? '')
}

function field(knob) {
  const given = Number(address().get(knob.name) ?? NaN)
  const value = Number.isInteger(given) ? given : knob.default
  const id = `knob-${knob.name}`
  const input = knob.choices?.length > 0
    ? el('select', { id, name: knob.name }, ...knob.choices.map((c) => el('option', { value: c.value, selected: c.value === value }, c.label)))
    : el('input', { id, name: knob.name, type: 'number', min: knob.min, max: knob.max, step: 1, required: true, value, inputmode: 'numeric' })
  const range = knob.choices?.length > 0 ? null : el('span', { class: 'range' }, ` ${knob.min} to ${knob.max}`)
  return el('div', { class: 'field' }, el('label', { for: id }, knob.label, range), input)
}

function knobs() {
  return Object.fromEntries([...new FormData($('knobs'))].map(([name, value]) => [name, Number(value)]))
}

// A run.

function showNothing() {
  showState('', '')
  $('run').removeAttribute('aria-disabled')
  $('plot').replaceChildren(el('p', { class: 'empty' }, 'Press Run: the spans and messages of the run appear here.'))
  timeline.run = null
  showChanged($('checks'), [], checkItem, 'They are checked when the scenario runs.')
  showChanged($('steps'), [], stepItem, 'They appear as the scenario runs.')
  showHint(null)
}

function showRun(run) {
  showState(run.state, stateOf(run))
  $('run').toggleAttribute('aria-disabled', false)
  if (run.state === 'running') {
    $('run').setAttribute('aria-disabled', 'true')
    $('elapsed').textContent = `${time(run.took_us ?? 0)} so far`
  }
  timeline.show(run)
  if (!$('item').hidden) timeline.markOpen(panel.id)
  showChanged($('checks'), run.checks, checkItem, run.state === 'running' ? 'Not checked yet.' : 'Nothing was checked.')
  showChanged($('steps'), run.steps, stepItem, 'None yet.')
}

// showChanged fills a list, unless it shows these entries already: the focus may be in it.
function showChanged(list, entries, make, none) {
  const shown = JSON.stringify([none, entries])
  if (list.shown === shown) return
  list.shown = shown
  list.replaceChildren(...(entries.length > 0 ? entries.map(make) : [el('li', { class: 'none' }, none)]))
}

function stepItem(step) {
  return el('li', {}, el('button', { type: 'button', class: 'step', onclick: () => timeline.reveal(step.at_us) },
    el('span', { class: 'at' }, time(step.at_us)), ' ', step.text))
}

function checkItem(check) {
  const word = check.ok ? 'Passed' : 'Failed'
  return el('li', { class: check.ok ? 'passed' : 'failed' }, el('strong', {}, word), ' ', check.text,
    check.why ? el('p', { class: 'why' }, check.why) : null)
}

async function start() {
  const started = scenario
  if ($('run').getAttribute('aria-disabled') === 'true') return
  $('run').setAttribute('aria-disabled', 'true')
  showState('running', 'Starting')
  panel.hide()
  const chosen = knobs()
  try {
    const id = await startRun(started.id, chosen)
    history.replaceState(null, '', `#${new URLSearchParams({ scenario: started.id, ...chosen, run: id })}`)
    await watch(id)
  } catch (error) {
    $('run').removeAttribute('aria-disabled')
    showState('failed', error.message, error === busy ? null : start)
  }
}

// watch polls a run until it has ended, and shows it for as long as its scenario is the chosen one.
async function watch(id) {
  following = id
  for (;;) {
    let run
    try {
      run = await fetchRun(id)
    } catch (error) {
      if (following === id) lost(error, id)
      return
    }
    if (following !== id) return
    const changed = runs.get(run.scenario)?.state !== run.state
    runs.set(run.scenario, run)
    if (run.scenario === scenario.id) showRun(run)
    if (changed) showList()
    if (run.state !== 'running') return
    await new Promise((resolve) => { setTimeout(resolve, pollEvery) })
  }
}

function lost(error, id) {
  $('run').removeAttribute('aria-disabled')
  if (error.status === 404) return showState('', 'The run of this address is no longer kept. Run it again.')
  showState('failed', error.message, () => watch(id))
}

// On a narrow screen the list of scenarios is closed once one is chosen.
const narrow = matchMedia('(max-width: 720px)')
function fold() {
  $('scenarios').firstElementChild.open = !narrow.matches
}
narrow.addEventListener('change', fold)
fold()

$('knobs').addEventListener('submit', (event) => { event.preventDefault(); start() })
$('zoom-in').addEventListener('click', () => timeline.zoom(1.5))
$('zoom-out').addEventListener('click', () => timeline.zoom(1 / 1.5))
$('fit').addEventListener('click', () => timeline.fit())
$('shorten').addEventListener('change', (event) => timeline.setShorten(event.target.checked))
addEventListener('hashchange', follow)
showHint(null)
load()
