# A rollout worker: acts with ONNX Runtime, holds no training framework.
#   make docker-worker
# More packages of environments: --build-arg EXTRAS="ale-py==0.11.2"
ARG PYTHON=3.12.8-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /source
RUN python -m venv /opt/coach
COPY docker/worker-requirements.txt docker/
RUN /opt/coach/bin/python -m pip install --no-cache-dir --requirement docker/worker-requirements.txt
ARG EXTRAS=""
RUN test -z "${EXTRAS}" || /opt/coach/bin/python -m pip install --no-cache-dir ${EXTRAS}
COPY pyproject.toml setup.py README.md LICENSE MANIFEST.in ./
COPY presets presets
COPY dashboard dashboard
COPY rl_coach rl_coach
RUN /opt/coach/bin/python -m pip install --no-cache-dir --no-deps . \
    && /opt/coach/bin/python -m pip uninstall --quiet --yes pip

FROM python:${PYTHON}
COPY --from=build /opt/coach /opt/coach
ENV PATH=/opt/coach/bin:${PATH} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
WORKDIR /coach
USER 10001:10001
CMD ["python", "-m", "rl_coach.rollout_worker", "--help"]
