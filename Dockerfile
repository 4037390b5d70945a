# docker build -t subagent-kit . && docker run --rm -p 127.0.0.1:8501:8501 subagent-kit
# A key reaches it by `-e OPENAI_API_KEY`; conversations and traces stay with `-v kit:/app/.kit`.
# `--target api` and `--target worker` build the other processes; compose.yaml runs all of them (docs/deploy.md).
FROM python:3.11-slim AS base

RUN useradd --create-home --uid 1000 kit
WORKDIR /app

COPY requirements.txt .
RUN pip install --no-cache-dir "uv>=0.13,<1" \
    && uv pip install --system --no-cache --require-hashes -r requirements.txt \
    && pip uninstall --yes uv

COPY --chown=kit:kit . .
RUN install --directory --owner kit --group kit /app/.kit
USER kit
ENV PYTHONUNBUFFERED=1

FROM base AS api
EXPOSE 8700
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8700/ready', timeout=4)"]
CMD ["python", "-m", "kit", "serve", "--host", "0.0.0.0", "--port", "8700"]

FROM base AS worker
CMD ["python", "-m", "kit", "worker"]

# The last one is what a build without a target makes.
FROM base AS app
# Inside the container only; which address of the host it is seen on is for `docker run -p` to say.
ENV STREAMLIT_SERVER_ADDRESS=0.0.0.0
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["python", "-m", "kit", "app", "--port", "8501"]
