// Shows the contract with Swagger UI, and gives it a token of the local issuer.
'use strict'

const ui = SwaggerUIBundle({
  dom_id: '#ui',
  url: '/openapi.yaml',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  showExtensions: true,
  tryItOutEnabled: true,
  validatorUrl: null,
  plugins: [() => ({ statePlugins: { spec: { wrapActions: { updateJsonSpec: (update) => (spec) => update(withoutOptional(spec)) } } } })],
  onComplete: authorize,
})

// withoutOptional takes the examples of optional parameters away. Swagger UI would send them, and a request with an example as
// its If-Match or its cursor is refused.
function withoutOptional(spec) {
  for (const parameter of Object.values(spec.components?.parameters ?? {})) {
    if (!parameter.required) delete parameter.example
  }
  return spec
}

async function authorize() {
  const answer = await fetch('/docs/token')
  if (!answer.ok) return
  ui.authActions.authorizeOauth2({
    auth: { name: 'oauth2', schema: { type: 'oauth2' }, clientId: 'local' },
    token: await answer.json(),
  })
  document.documentElement.dataset.ready = 'true'
}
