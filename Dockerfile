# The two commands on Debian: docker build . runs `make demo`, docker run runs `make test`.
FROM debian:bookworm
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates make r-base-dev && rm -rf /var/lib/apt/lists/*
COPY . /noiseaware
WORKDIR /noiseaware
RUN make demo
CMD ["make", "test"]
