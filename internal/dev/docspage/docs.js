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
  onComplete: authorize,
})

async function authorize() {
  const answer = await fetch('/docs/token')
  if (!answer.ok) return
  ui.authActions.authorizeOauth2({
    auth: { name: 'oauth2', schema: { type: 'oauth2' }, clientId: 'local' },
    token: await answer.json(),
  })
  document.documentElement.dataset.ready = 'true'
}
