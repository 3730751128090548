"""Where jobs leave what they have made."""

from datetime import UTC, datetime

from trainer.record import job_folder


def test_jobs_that_start_in_the_same_second_share_no_folder(tmp_path):
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    folders = {job_folder(tmp_path, at) for _ in range(3)}
    assert len(folders) > 1
    assert all(folder.name.startswith("20260102-030405-") for folder in folders)
