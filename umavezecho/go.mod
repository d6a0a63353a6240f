module github.com/umavez/umavez/umavezecho

go 1.26.0

require (
	github.com/labstack/echo/v5 v5.4.4
	github.com/umavez/umavez v0.0.0
)

require golang.org/x/time v0.15.0 // indirect

replace github.com/umavez/umavez => ..
