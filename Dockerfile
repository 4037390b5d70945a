# docker build -t subagent-kit . && docker run --rm -p 127.0.0.1:8501:8501 subagent-kit
# A key reaches it by `-e OPENAI_API_KEY`; conversations and traces stay with `-v kit:/app/.kit`.
FROM python:3.11-slim

RUN useradd --create-home --uid 1000 kit
WORKDIR /app

COPY requirements.txt .
RUN pip install --no-cache-dir "uv>=0.13,<1" \
    && uv pip install --system --no-cache --require-hashes -r requirements.txt \
    && pip uninstall --yes uv

COPY --chown=kit:kit . .
RUN install --directory --owner kit --group kit /app/.kit
USER kit

# Inside the container only; which address of the host it is seen on is for `docker run -p` to say.
ENV STREAMLIT_SERVER_ADDRESS=0.0.0.0 PYTHONUNBUFFERED=1
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["python", "-m", "streamlit", "run", "app.py", "--server.port", "8501"]
