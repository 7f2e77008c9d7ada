/** What the system says of a file or folder, in words. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is nothing of that name',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
  EEXIST: 'there is a file of that name',
  ENOSPC: 'the disk is full',
  EDQUOT: 'this user has no disk space left',
  EROFS: 'its file system can only be read',
  EMFILE: 'too many files are open',
  ENAMETOOLONG: 'its name is too long',
  ELOOP: 'its links go round in a circle',
};

/** Why a file or folder cannot be used, as a part of a sentence. What has no words here is told as the system says it. */
export function fileProblem(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return (code === undefined ? undefined : REASONS[code]) ?? message;
}
