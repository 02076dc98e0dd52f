"""Answers about training jobs are what the OpenAPI document says."""
import subprocess
import sys

from tandem_server import ROOT
from training_jobs import TrainingTest


class TrainingOpenApi(TrainingTest):
    def test_the_document_says_what_a_job_looks_like(self):
        self.serve()
        submitted = self.submit(checkpoint={"every_steps": 10})
        self.wait(submitted["id"], "succeeded")
        script = ROOT / "tests/server/rest/openapi_check.py"
        done = subprocess.run(
            [sys.executable, script, f"http://{self.server.http}", "--require-validator", "--under", "/v2/train"],
            capture_output=True,
            text=True,
            timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.show(submitted["id"])["state"], "succeeded")
