package browser

import "testing"

// Ensure that the reference of the API loads without an error, and that a request sent from it is answered by the service.
func TestReferenceSendsRequests(t *testing.T) {
	for _, look := range looks {
		p := open(t, look, serving(t)+"/docs/")
		p.until(`document.documentElement.dataset.ready === 'true'`)
		p.staysInItsWidth()
		p.shoot("docs")
		const place = `#operations-orders-place-order`
		p.click(place + " .opblock-summary-control")
		p.until(`document.querySelector('` + place + ` tr[data-param-name="Idempotency-Key"] input')?.value &&
			document.querySelector('` + place + ` textarea')?.value ? true : false`) // the examples of the contract
		p.click(place + " .execute")
		p.until(`document.querySelector('` + place + ` .live-responses-table .response-col_status') !== null`)
		if status := p.text(place + " .live-responses-table .response .response-col_status"); status != "201" {
			t.Errorf("%s: place-order was answered %q: %s", look.name, status, p.text(place+" .live-responses-table"))
		}
		p.staysInItsWidth()
		p.shoot("docs sent")
		const list = `#operations-orders-list-orders` // whose optional parameters stay empty
		p.click(list + " .opblock-summary-control")
		p.click(list + " .execute")
		p.until(`document.querySelector('` + list + ` .live-responses-table .response-col_status') !== null`)
		if status := p.text(list + " .live-responses-table .response .response-col_status"); status != "200" {
			t.Errorf("%s: list-orders was answered %q: %s", look.name, status, p.text(list+" .live-responses-table"))
		}
		eval[*struct{}](p, `void document.querySelector('`+place+` .live-responses-table').scrollIntoView()`)
		p.shoot("docs answer")
	}
}
