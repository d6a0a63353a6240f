package umavezgin_test

import (
	"testing"

	"github.com/umavez/umavez/internal/leak"
)

// TestMain fails when a test has left a goroutine of ours behind.
func TestMain(m *testing.M) { leak.Main(m) }
