package compare_test

import (
	"testing"

	"github.com/tallystick/tallystick/reconcile/compare"
)

// BenchmarkCompare is the hot path: two fields of a pair that agree, among others that don't count.
func BenchmarkCompare(b *testing.B) {
	comparer, err := compare.New([]compare.Field{
		{Left: "amount", Right: "amount", Tolerance: "0.01"},
		{Left: "currency", Right: "currency"},
	})
	if err != nil {
		b.Fatal(err)
	}
	const left = `{"amount":"1234.50","currency":"EUR","note":"invoice 2024-03 settled by card"}`
	const right = `{"amount":"1234.50","channel":"card","currency":"EUR","fee":{"rate":"0.2"}}`
	b.ReportAllocs()
	for b.Loop() {
		if verdict, _ := comparer.Compare(left, right); verdict != compare.Agree {
			b.Fatal(verdict)
		}
	}
}

// BenchmarkCompareWithin is the pair whose amounts differ by a fee.
func BenchmarkCompareWithin(b *testing.B) {
	comparer, err := compare.New([]compare.Field{
		{Left: "amount", Right: "paid.amount", Tolerance: "5%"},
	})
	if err != nil {
		b.Fatal(err)
	}
	const left = `{"amount":"324.71","currency":"EUR"}`
	const right = `{"currency":"EUR","paid":{"amount":"320.00","by":"card"}}`
	b.ReportAllocs()
	for b.Loop() {
		if verdict, _ := comparer.Compare(left, right); verdict != compare.Agree {
			b.Fatal(verdict)
		}
	}
}
