package record

import "testing"

const typical = `{"payment_id":"p-00012345","account":"acc-00000042","currency":"EUR",` +
	`"occurred_at":"2024-03-01T12:34:56.123456Z","amount":1234.50,` +
	`"note":"invoice 2024-03 settled by card, thanks a lot"}`

// BenchmarkJSON is the hot path: a flat object of 180 bytes with six fields.
func BenchmarkJSON(b *testing.B) {
	m, err := New(Mapping{
		ID: "payment_id", Key: []string{"account", "currency"}, Time: "occurred_at",
		Keep: []string{"currency"}, Numeric: []string{"amount"},
	})
	if err != nil {
		b.Fatal(err)
	}
	raw := []byte(typical)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if r := m.JSON(raw); r.Reason != "" {
			b.Fatal(r.Reason)
		}
	}
}

// BenchmarkJSONNested has its fields two objects deep, as webhooks have.
func BenchmarkJSONNested(b *testing.B) {
	m, err := New(Mapping{
		ID: "id", Key: []string{"data.object.account"}, Time: "data.object.at",
		Numeric: []string{"data.object.amount"},
	})
	if err != nil {
		b.Fatal(err)
	}
	raw := []byte(`{"id":"evt_1","type":"charge","data":{"object":{"account":"acc-42",` +
		`"amount":"12.50","at":"2024-03-01T12:34:56Z","note":"invoice 2024-03 settled by card"}}}`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if r := m.JSON(raw); r.Reason != "" {
			b.Fatal(r.Reason)
		}
	}
}
