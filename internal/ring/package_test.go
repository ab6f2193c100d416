package ring

import (
	"testing"

	"go.uber.org/goleak"
)

// main removes what tests share when all have run.
type main struct{ *testing.M }

func (m main) Run() int {
	defer removeWriter()
	return m.M.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(main{m}) }
