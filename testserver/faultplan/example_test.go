package faultplan_test

import (
	"fmt"

	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
)

func Example() {
	plan, err := faultplan.ParsePlan([]byte(`
seed: 7
faults:
- "watch pods: drop 10%"
- "outage after=30s for=2s every=1m"
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	active := faultplan.NewActive(testserver.New(testserver.Options{}), plan.Seed)
	defer active.Close()
	if _, err := active.InjectAll(plan.Faults); err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range active.List() {
		fmt.Println(f.ID, f.Fault, f.Active)
	}
	// Output:
	// 1 watch pods: drop 10% true
	// 2 outage after=30s for=2s every=1m false
}
