// What the page asks the lab for. Errors have a message for the reader; `status` is 0 where no answer came.

const patience = 10_000 // milliseconds for an answer

// busy is what startRun throws while another run is under way.
export const busy = new Error('Another run is under way. Run this one when it has ended.')

export async function fetchScenarios() {
  return (await ask('/lab/scenarios')).scenarios
}

// startRun returns the id of the new run.
export async function startRun(scenario, knobs) {
  try {
    return (await ask('/lab/runs', { scenario, knobs })).id
  } catch (error) {
    throw error.status === 409 ? busy : error
  }
}

export async function fetchRun(id) {
  const run = await ask(`/lab/runs/${encodeURIComponent(id)}`)
  // A list without entries may be null.
  for (const list of ['lanes', 'items', 'checks', 'steps']) run[list] ??= []
  return run
}

async function ask(path, body) {
  let response
  try {
    response = await fetch(path, {
      method: body ? 'POST' : 'GET', headers: body ? { 'Content-Type': 'application/json' } : {},
      body: body && JSON.stringify(body), signal: AbortSignal.timeout(patience),
    })
  } catch {
    throw failure('The lab does not answer. Is `make run` still running?', 0)
  }
  const answer = await response.json().catch(() => null)
  if (response.ok && answer) return answer
  throw failure(answer?.detail ?? answer?.title ?? `The lab answered ${response.status}.`, response.status)
}

function failure(message, status) {
  return Object.assign(new Error(message), { status })
}
