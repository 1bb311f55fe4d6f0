# One target, and so one image, for each command: an image holds one static binary and certificates, and no shell.
#
#   docker build --target api .      also: worker, migrate; and for local work: sandbox, seed

FROM golang:1.26-bookworm AS build
WORKDIR /src
ENV CGO_ENABLED=0
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -ldflags="-s -w" -o /out/ ./cmd/api ./cmd/worker ./cmd/migrate ./cmd/sandbox ./cmd/dev
RUN mkdir /data

# Empty but for the certificates that TLS needs. The user is a number, so it needs no /etc/passwd.
FROM scratch AS base
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
USER 65532:65532

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
COPY --from=build --chown=65532:65532 /data /data
EXPOSE 8089
ENTRYPOINT ["/sandbox"]

FROM base AS seed
COPY --from=build /out/dev /dev-tool
ENTRYPOINT ["/dev-tool"]
CMD ["seed"]
