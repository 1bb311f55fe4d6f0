# One target, and so one image, for each command: an image holds one static binary and nothing else, no shell either.
#
#   docker build --target api .      also: worker, migrate; and for local work: sandbox, seed

FROM golang:1.26-bookworm AS build
WORKDIR /src
ENV CGO_ENABLED=0
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -ldflags="-s -w" -o /out/ ./cmd/api ./cmd/worker ./cmd/migrate ./cmd/sandbox ./cmd/dev

FROM gcr.io/distroless/static-debian12:nonroot AS base

FROM base AS api
COPY --from=build /out/api /api
EXPOSE 8080 8081
ENTRYPOINT ["/api"]

FROM base AS worker
COPY --from=build /out/worker /worker
EXPOSE 8081
ENTRYPOINT ["/worker"]

FROM base AS migrate
COPY --from=build /out/migrate /migrate
ENTRYPOINT ["/migrate"]
CMD ["up"]

# Not for production: the payment provider's stand-in, and the catalogue to try things with.
FROM base AS sandbox
COPY --from=build /out/sandbox /sandbox
EXPOSE 8089
ENTRYPOINT ["/sandbox"]

FROM base AS seed
COPY --from=build /out/dev /dev-tool
ENTRYPOINT ["/dev-tool"]
CMD ["seed"]
