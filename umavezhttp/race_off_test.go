//go:build !race

package umavezhttp_test

func raceDetector() bool { return false }
