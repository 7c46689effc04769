package trace

import (
	"math"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/testfuzz"
)

// FuzzReadVMTable: a table is refused, or its demand is of the VMs in it.
func FuzzReadVMTable(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add("vm,sub,dep,0,300,1,2,3,a,4,8\nvm,sub,dep,600,2591700,1,2,3,a,4,8\n")
	f.Add("vm,sub,dep,31622400,0,1,2,3,a,4,8\n")
	f.Add("a,b\n")
	f.Add("vm,sub,dep,-1,x,1,2,3,a,4,8\n")
	f.Add("\"")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadVMTable(strings.NewReader(text))
		if err != nil {
			return
		}
		rows := float64(strings.Count(text, "\n") + 1)
		for i, b := range s.Bins {
			if math.Abs(b.Net) > 2*rows {
				t.Fatalf("bin %d of %g rows has a demand of %g", i, rows, b.Net)
			}
		}
	})
}
