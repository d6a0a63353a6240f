package bench

import (
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/gofiber/storage/memory/v2"
	"github.com/valyala/fasthttp"
)

// fiberKey is the header in which fiber's middleware looks for a key by default.
const fiberKey = "X-Idempotency-Key"

// fiberSide is fiber's idempotency middleware with its defaults. Its storage is
// fiber's public one for memory, which can be emptied; the middleware's own,
// which cannot be reached from outside, is a copy of that.
func fiberSide(tb testing.TB) *side {
	storage := memory.New()
	tb.Cleanup(func() { _ = storage.Close() }) // it always succeeds
	s := &side{name: "fiber", ran: new(int)}
	s.renew = func() {
		if err := storage.Reset(); err != nil {
			tb.Fatal(err)
		}
	}
	pagar := func(c fiber.Ctx) error {
		*s.ran++
		_ = c.Body()
		c.Set(fiber.HeaderContentType, media)
		return c.Status(status).SendString(answer)
	}
	bare, once := fiber.New(), fiber.New()
	once.Use(idempotency.New(idempotency.Config{Storage: storage}))
	bare.Post(path, pagar)
	once.Post(path, pagar)
	s.bare, s.once = throughFiber(bare.Handler()), throughFiber(once.Handler())
	return s
}

// throughFiber returns what sends one request through an app, as fasthttp's
// server would hand it over: contexts are used again.
func throughFiber(h fasthttp.RequestHandler) func(key string) int {
	var ctx fasthttp.RequestCtx
	ctx.Init(&fasthttp.Request{}, nil, nil)
	return func(key string) int {
		ctx.Request.Reset()
		ctx.Response.Reset()
		ctx.ResetUserValues()
		r := &ctx.Request
		r.Header.SetMethod(fasthttp.MethodPost)
		r.SetRequestURI(path)
		r.Header.SetHost("example.com")
		r.Header.SetContentType(media)
		r.Header.Set(fiberKey, key)
		r.SetBodyString(request)
		h(&ctx)
		if len(ctx.Response.Body()) != len(answer) {
			return 0
		}
		return ctx.Response.StatusCode()
	}
}
